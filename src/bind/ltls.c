#include "bind/ltls.h"

#include "bind/lfield.h"
#include "net/tls.h"

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void push_certificate(lua_State *L, const struct tls_info *info)
{
    lua_createtable(L, 0, 3);
    set_text(L, "subject", info->peer_subject);
    set_text(L, "serial", info->peer_serial);
    set_text(L, "fingerprint", info->peer_fingerprint);
}

void ltls_push_info(lua_State *L, const struct tls_info *info, const char *peer)
{
    lua_createtable(L, 0, 6);
    set_text(L, "version", info->version);
    set_text(L, "cipher", info->cipher);
    if (*info->sni)
        set_text(L, "sni", info->sni);
    lfield_set_bool(L, "resumed", info->resumed);
    if (*info->peer_fingerprint) {
        push_certificate(L, info);
        lua_setfield(L, -2, peer);
    }
}
