/* Whatever bytes marshal_push() accepts give a value that becomes bytes again, and from then on the
 * same: bytes -> Lua -> bytes' -> Lua -> bytes'. links: srv_vm */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "vm/marshal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

/* Reads BYTES and writes what came of them to OUT. False: refused, and nothing was pushed. */
static int through(lua_State *L, struct str bytes, struct buf *out)
{
    lua_settop(L, 0);
    if (!marshal_push(L, NULL, bytes)) {
        must(lua_gettop(L) == 0);
        return 0;
    }
    must(lua_gettop(L) == 1);
    buf_clear(out);
    must(marshal_add(L, 1, NULL, out) == NULL);
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
    if (!through(L, str_make((const char *)bytes, len), &once))
        return 0;
    must(through(L, buf_str(&once), &twice));
    must(once.len == twice.len && memcmp(once.at, twice.at, once.len) == 0);
    return 0;
}
