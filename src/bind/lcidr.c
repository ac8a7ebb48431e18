#include "bind/lcidr.h"

#include <stdbool.h>

#include <lauxlib.h>

#include "base/cidr.h"
#include "base/compiler.h"
#include "bind/lclass.h"
#include "bind/lstr.h"

#define SET_METATABLE "srv.Networks"

enum { NETWORKS_MAX = 4096 };

struct lset {
    bool        unix_peers; /* who comes by a Unix socket is in it: he is on this machine */
    unsigned    count;
    struct cidr networks[];
};

/* set(networks, unix_peers) -> set | nil, the text that is none. NETWORKS: texts like "10.0.0.0/8" */
static int set(lua_State *L)
{
    size_t       count = lua_objlen(L, 1);
    struct lset *own;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, count <= NETWORKS_MAX, 1, "too many networks");
    own             = lua_newuserdata(L, sizeof(*own) + count * sizeof(own->networks[0]));
    own->unix_peers = lua_toboolean(L, 2);
    own->count      = (unsigned)count;
    for (unsigned i = 0; i < count; i++) {
        lua_rawgeti(L, 1, (int)i + 1);
        if (!cidr_parse(&own->networks[i], lstr_check(L, -1))) {
            lua_pushnil(L);
            lua_insert(L, -2);
            return 2;
        }
        lua_pop(L, 1);
    }
    luaL_getmetatable(L, SET_METATABLE);
    lua_setmetatable(L, -2);
    return 1;
}

/* set:has(ip) -> boolean; "unix" is a peer of a Unix socket, what is no address is in no set */
static int has(lua_State *L)
{
    struct lset *own  = luaL_checkudata(L, 1, SET_METATABLE);
    struct str   text = lstr_check(L, 2);
    bool         is   = own->unix_peers && str_is(text, STR("unix"));
    struct ip    ip;

    if (ip_parse(&ip, text))
        for (unsigned i = 0; !is && i < own->count; i++)
            is = cidr_has(&own->networks[i], &ip);
    lua_pushboolean(L, is);
    return 1;
}

/* address(text) -> the address in its one spelling | nil: it is none */
static int address(lua_State *L)
{
    char      to[CIDR_TEXT_BYTES];
    struct ip ip;

    if (!ip_parse(&ip, lstr_check(L, 1)))
        return 0;
    lua_pushstring(L, ip_format(&ip, to));
    return 1;
}

/* client(text, bits) -> whom to count together: an IPv4 address, an IPv6 network of BITS, or TEXT as it
 * is when it is no address */
static int client(lua_State *L)
{
    struct str  text = lstr_check(L, 1);
    lua_Integer bits = luaL_checkinteger(L, 2);
    char        to[CIDR_TEXT_BYTES];
    struct cidr around;
    struct ip   ip;

    luaL_argcheck(L, bits >= 0 && bits <= CIDR_BITS, 2, "from 0 to 128");
    if (!ip_parse(&ip, text)) {
        lua_pushvalue(L, 1);
        return 1;
    }
    around = cidr_around(&ip, ip_is_v4(&ip) ? CIDR_BITS : (unsigned)bits);
    lua_pushstring(L, ip_format(&around.ip, to));
    return 1;
}

int lcidr_open(lua_State *L)
{
    static const luaL_Reg METHODS[]   = { { "has", has }, { NULL, NULL } };
    static const luaL_Reg FUNCTIONS[] = {
        { "set", set },
        { "address", address },
        { "client", client },
        { NULL, NULL },
    };

    lclass_add(L, SET_METATABLE, METHODS);
    lua_createtable(L, 0, ARRAY_LEN(FUNCTIONS));
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
