#include "bind/lprocess.h"

#include <lauxlib.h>
#include <unistd.h>

#include "base/proc_ports.h"

/* ports(pid) -> array of the TCP ports on which it and its children listen. Blocks for a moment. */
static int lprocess_ports(lua_State *L)
{
    uint16_t ports[PROC_PORTS_MAX];
    unsigned count = proc_ports((pid_t)luaL_checkint(L, 1), ports);

    lua_createtable(L, (int)count, 0);
    for (unsigned i = 0; i < count; i++) {
        lua_pushinteger(L, ports[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* program() -> path of the binary that runs this | nil */
static int lprocess_program(lua_State *L)
{
    char    path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path));

    if (len <= 0 || (size_t)len == sizeof(path))
        return 0;
    lua_pushlstring(L, path, (size_t)len);
    return 1;
}

int lprocess_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "ports", lprocess_ports },
        { "program", lprocess_program },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
