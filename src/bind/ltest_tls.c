#include "bind/ltest_tls.h"

#include <lauxlib.h>

#include "base/arena.h"
#include "bind/lfield.h"
#include "net/tls.h"

/* The text NAME of the table on top of the stack. */
static const char *text_of(lua_State *L, const char *name, const char *fallback,
                           struct arena *arena)
{
    struct str given = lfield_str(L, -1, name);

    if (!given.at)
        return fallback;
    return arena_copy(arena, str_make(given.at, given.len + 1)).at; /* with its NUL */
}

/* A client that is said to have shown a certificate has one with a fingerprint. */
static void read_client(lua_State *L, struct tls_info *info, struct arena *arena)
{
    info->peer_subject = info->peer_serial = info->peer_fingerprint = "";
    lua_getfield(L, -1, "client");
    if (lua_istable(L, -1)) {
        info->peer_subject = text_of(L, "subject", "CN=test", arena);
        info->peer_serial  = text_of(L, "serial", "01", arena);
        info->peer_fingerprint =
            text_of(L, "fingerprint",
                    "0000000000000000000000000000000000000000000000000000000000000000", arena);
    }
    lua_pop(L, 1);
}

const struct tls_info *ltest_tls_read(lua_State *L, int request, struct arena *arena)
{
    struct tls_info *info = NULL;

    lua_getfield(L, request, "tls");
    if (lua_istable(L, -1)) {
        info          = arena_zalloc(arena, sizeof(*info));
        info->version = text_of(L, "version", "TLSv1.3", arena);
        info->cipher  = text_of(L, "cipher", "TLS_AES_128_GCM_SHA256", arena);
        info->sni     = text_of(L, "sni", "", arena);
        info->alpn    = "http/1.1";
        info->resumed = lfield_bool(L, -1, "resumed");
        read_client(L, info, arena);
    }
    lua_pop(L, 1);
    return info;
}
