#include "bind/lsocket_server.h"

#include <lauxlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lsocket_fault.h"
#include "bind/lsocket_state.h"
#include "net/tls.h"

#define SERVER_METATABLE "srv.core.TlsServer"

enum { FILES = 3 /* cert, key, client_ca */ };

/* Its settings are the environment of the userdata. */
struct lserver {
    struct handle      handle;
    struct tls        *tls;
    struct tls_server *server; /* NULL: the VM goes */
    struct fs_mark     files[FILES];
};

static void close_server(struct lserver *server)
{
    tls_server_close(server->server); /* connections keep what they need */
    server->server = NULL;
}

static void on_cut(struct handle *handle)
{
    close_server(container_of(handle, struct lserver, handle));
}

static int server_gc(lua_State *L)
{
    struct lserver *server = lua_touserdata(L, 1);

    handle_unlink(&server->handle);
    close_server(server);
    return 0;
}

/* --- files ------------------------------------------------------------------------------------------ */

static struct fs_mark look_at(lua_State *L, int settings, const char *name)
{
    struct tls_pem pem = tls_pem_of(lfield_str(L, settings, name));

    return pem.path ? fs_mark(pem.path) : (struct fs_mark){ 0 };
}

/* True: they are others than they were. */
static bool look_at_all(lua_State *L, int settings, struct fs_mark seen[FILES])
{
    static const char *const NAMES[FILES] = { "cert", "key", "client_ca" };
    bool                     are_new      = false;

    for (int i = 0; i < FILES; i++) {
        struct fs_mark now = look_at(L, settings, NAMES[i]);

        are_new |= !fs_mark_is_same(now, seen[i]);
        seen[i] = now;
    }
    return are_new;
}

static enum tls_client_certs client_certs_of(struct str word)
{
    if (str_is(word, STR("required")))
        return TLS_CLIENT_CERTS_REQUIRED;
    return str_is(word, STR("optional")) ? TLS_CLIENT_CERTS_OPTIONAL : TLS_CLIENT_CERTS_NONE;
}

/* What it was stays if the files are no good. */
static int read_files(lua_State *L, int settings, struct lserver *server, struct err *err)
{
    const char         *alpn[TLS_ALPN_MAX + 1];
    struct tls_identity identity = { .cert = tls_pem_of(lfield_str(L, settings, "cert")),
                                     .key  = tls_pem_of(lfield_str(L, settings, "key")) };
    struct tls_server  *fresh;
    int                 rc =
        tls_server_open(&fresh, server->tls,
                        &(struct tls_server_options){
                            .identities     = &identity,
                            .identity_count = 1,
                            .alpn           = tls_alpn_list(lfield_str(L, settings, "alpn"), alpn),
                            .client_certs = client_certs_of(lfield_str(L, settings, "client_cert")),
                            .client_ca    = tls_pem_of(lfield_str(L, settings, "client_ca")),
                        },
                        err);

    if (rc != 0)
        return rc;
    close_server(server);
    server->server = fresh;
    return 0;
}

/* server { cert, key, client_ca, client_cert, alpn } -> server | nil, err: as srv.async.tls makes them */
static int new_server(lua_State *L)
{
    struct tls     *tls = env_of(L)->tls;
    struct lserver *server;
    struct err      err;

    luaL_checktype(L, 1, LUA_TTABLE);
    if (!tls)
        return lerror_nil(L, "unavailable", "no TLS is lent to this VM");
    server             = lclass_new(L, SERVER_METATABLE, sizeof(*server));
    server->handle.cut = on_cut;
    server->tls        = tls;
    handle_link(&server->handle, vm_of(L));
    lua_pushvalue(L, 1);
    lua_setfenv(L, -2);
    look_at_all(L, 1, server->files); /* before they are read */
    if (read_files(L, 1, server, &err) != 0)
        return lerror_nil(L, "tls", "%s", err.text);
    return 1;
}

/* --- accepting -------------------------------------------------------------------------------------- */

static void freshen(lua_State *L, struct lserver *server)
{
    struct err err;
    int        settings;

    lua_getfenv(L, 2);
    settings = lua_gettop(L);
    if (look_at_all(L, settings, server->files) && read_files(L, settings, server, &err) != 0)
        log_warn("certificate kept", "reason=%s", err.text);
    lua_pop(L, 1);
}

/* core:accept(server) -> true | nil, err: TLS from the next byte on, as a server */
static int socket_accept(lua_State *L)
{
    struct lsocket *s      = luaL_checkudata(L, 1, LSOCKET_METATABLE);
    struct lserver *server = luaL_checkudata(L, 2, SERVER_METATABLE);

    freshen(L, server);
    if (!s->open)
        return lsocket_push_closed(L, s);
    if (tls_accept(&s->stream, server->server, STR_NONE) != 0)
        return lerror_nil(L, "tls", "no memory for a connection by TLS");
    lua_pushboolean(L, true);
    return 1;
}

void lsocket_server_add(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "__gc", server_gc }, { NULL, NULL } };

    lclass_add(L, SERVER_METATABLE, METHODS);
    lua_pushcfunction(L, new_server);
    lua_setfield(L, -2, "server");
    luaL_getmetatable(L, LSOCKET_METATABLE);
    lua_pushcfunction(L, socket_accept);
    lua_setfield(L, -2, "accept");
    lua_pop(L, 1);
}
