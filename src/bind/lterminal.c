#include "bind/lterminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <lauxlib.h>

/* is_terminal(fd) -> boolean */
static int lterminal_is(lua_State *L)
{
    lua_pushboolean(L, isatty(luaL_checkint(L, 1)));
    return 1;
}

/* width(fd) -> columns | nil */
static int lterminal_width(lua_State *L)
{
    struct winsize size;

    if (ioctl(luaL_checkint(L, 1), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 0;
    lua_pushinteger(L, size.ws_col);
    return 1;
}

int lterminal_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "is_terminal", lterminal_is },
        { "width", lterminal_width },
        { NULL, NULL },
    };

    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
