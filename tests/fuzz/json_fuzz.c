/* Whatever the decoder accepts is encoded to a text that it accepts as well, and that is the same
 * from then on: JSON -> Lua -> JSON' -> Lua -> JSON'. links: srv_bind */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/ljson.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

/* Decodes TEXT, encodes what came of it to OUT. False: refused. */
static int through(lua_State *L, struct str text, struct buf *out, unsigned flags)
{
    struct ljson_decode options = { .depth_max = LJSON_DEPTH_MAX };

    lua_settop(L, 0);
    if (ljson_decode(L, text, &options) != 1)
        return 0;
    must(lua_gettop(L) == 1);
    buf_clear(out);
    must(ljson_encode(L, 1, out, flags) == LJSON_OK);
    must(lua_gettop(L) == 1);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static lua_State *L;
    static struct buf once, twice;

    if (!L) {
        L = luaL_newstate();
        buf_init(&once, 64 << 20);
        buf_init(&twice, 64 << 20);
    }
    if (!through(L, str_make((const char *)bytes, len), &once, 0))
        return 0;
    must(through(L, buf_str(&once), &twice, 0));
    must(str_is(buf_str(&once), buf_str(&twice)));

    must(through(L, buf_str(&once), &twice, LJSON_PRETTY));
    must(through(L, buf_str(&twice), &twice, 0));
    must(str_is(buf_str(&once), buf_str(&twice)));
    return 0;
}
