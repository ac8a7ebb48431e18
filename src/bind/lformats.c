#include "bind/lformats.h"

#include <lauxlib.h>

#include "base/format.h"
#include "bind/lstr.h"

/* A function of its own for each: these stand in the middle of what the JIT has compiled, where every
 * look at an upvalue counts. */
#define FORMAT(name)                                                                               \
    static int name(lua_State *L)                                                                  \
    {                                                                                              \
        lua_pushboolean(L, format_is_##name(lstr_check(L, 1)));                                    \
        return 1;                                                                                  \
    }

FORMAT(host)
FORMAT(ipv4)
FORMAT(ipv6)
FORMAT(email)
FORMAT(url)
FORMAT(date)
FORMAT(time)
FORMAT(datetime)
FORMAT(uuid)
FORMAT(slug)
FORMAT(hex)
FORMAT(base64)

int lformats_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "host", host },         { "ipv4", ipv4 }, { "ipv6", ipv6 }, { "email", email },
        { "url", url },           { "date", date }, { "time", time }, { "uuid", uuid },
        { "datetime", datetime }, { "slug", slug }, { "hex", hex },   { "base64", base64 },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
