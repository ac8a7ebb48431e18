#include "bind/lgzip.h"

#include <lauxlib.h>

#include "base/coding.h"
#include "base/deflate.h"
#include "bind/lstr.h"

/* With what luaL_error() jumps past the writer would be lost, so nothing here raises before it is free: the
 * room for the result is taken first, as much as zlib can ever need for TEXT (deflateBound() in zlib.h). */
static size_t room_for(struct str text)
{
    return text.len + (text.len >> 9) + 1024;
}

/* pack(text) -> its gzip | nil: no memory. Blocks: for commands, not for requests. */
static int lgzip_pack(lua_State *L)
{
    struct str       text = lstr_check(L, 1);
    size_t           room = room_for(text), made = 0;
    char            *to     = lua_newuserdata(L, room);
    struct coding   *writer = gzip_writer_new();
    enum coding_step step;

    if (!writer)
        return 0;
    step = coding_run(writer, &text, true, to, room, &made);
    coding_free(writer);
    if (step != CODING_DONE)
        return 0;
    return lstr_push(L, str_make(to, made));
}

int lgzip_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "pack", lgzip_pack },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
