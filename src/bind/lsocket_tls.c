#include "bind/lsocket_tls.h"

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lfetch_spec.h"
#include "bind/lfield.h"
#include "bind/lsocket_fault.h"
#include "bind/lsocket_state.h"
#include "bind/ltask.h"
#include "bind/ltls.h"
#include "client/client.h"
#include "client/client_tls.h"
#include "net/tls.h"

static struct lsocket *check_socket(lua_State *L)
{
    return luaL_checkudata(L, 1, LSOCKET_METATABLE);
}

/* --- the handshake -------------------------------------------------------------------------------- */

/* core:secure { tls = settings (lua/srv/async/tls.lua), key } -> true | nil, err: TLS from the next byte on, as a client.
 * Sessions are taken up again under KEY */
static int socket_secure(lua_State *L)
{
    struct lsocket     *s      = check_socket(L);
    struct http_client *client = env_of(L)->client;
    struct client_tls   settings;
    struct err          err;

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_argcheck(L, lfetch_read_tls(L, 2, "tls", &settings), 2, "no settings of TLS");
    if (!s->open)
        return lsocket_push_closed(L, s);
    if (!client)
        return lerror_nil(L, "unavailable", "no TLS is lent to this VM");
    if (client_tls_begin(http_client_tls(client), &settings, lfield_str(L, 2, "key"), &s->stream,
                         &err) < 0)
        return lerror_nil(L, "tls", "%s", err.text);
    lua_pushboolean(L, true);
    return 1;
}

static int push_shaken(lua_State *L, void *op)
{
    struct way     *way     = op;
    struct lsocket *s       = way->socket;
    int             results = 1;

    if (s->open && tls_info(&s->stream)) {
        lua_pushboolean(L, true);
    } else if (way->timed_out) {
        lsocket_close(s);
        results = lerror_nil(L, "timeout", "the TLS handshake did not end in time");
    } else {
        results = lsocket_push_closed(L, s);
    }
    return lsocket_settle(way, results);
}

/* core:shake([seconds]) -> true | nil, err: until the handshake is over that secure() or accept() has begun */
static int socket_shake(lua_State *L)
{
    struct lsocket *s       = check_socket(L);
    uint64_t        timeout = ltask_timeout_ms(L, 2);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (s->in.task)
        return lsocket_push_busy(L, "reading");
    if (!s->open || s->stream.saw_err)
        return lsocket_push_closed(L, s);
    return lsocket_wait(L, &s->in, timeout, push_shaken);
}

/* --- what is known -------------------------------------------------------------------------------- */

/* core:tls() -> { version, cipher, resumed, alpn, sni, peer = { subject, serial, fingerprint } | nil } | nil: of a
 * handshake that is over */
static int socket_tls(lua_State *L)
{
    struct lsocket        *s    = check_socket(L);
    const struct tls_info *info = s->open ? tls_info(&s->stream) : NULL;

    if (!info)
        return 0;
    ltls_push_info(L, info, "peer");
    if (*info->alpn) {
        lua_pushstring(L, info->alpn);
        lua_setfield(L, -2, "alpn");
    }
    return 1;
}

void lsocket_tls_add(lua_State *L)
{
    static const luaL_Reg METHODS[] = { { "secure", socket_secure },
                                        { "shake", socket_shake },
                                        { "tls", socket_tls },
                                        { NULL, NULL } };

    luaL_getmetatable(L, LSOCKET_METATABLE);
    luaL_setfuncs(L, METHODS, 0);
    lua_pop(L, 1);
}
