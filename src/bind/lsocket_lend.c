#include "bind/lsocket_lend.h"

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lfetch_spec.h"
#include "bind/lfield.h"
#include "bind/lsocket_fault.h"
#include "bind/lsocket_state.h"
#include "client/client.h"
#include "client/client_tls.h"
#include "http/stream_channel.h"

/* --- lending ---------------------------------------------------------------------------------------- */

static void on_released(struct stream *stream, void *arg)
{
    struct lsocket *s = arg;

    s->lent = NULL;
    stream_fini(stream);
    luaL_unref(s->L, LUA_REGISTRYINDEX, s->self_ref);
}

void lsocket_take_back(struct lsocket *s)
{
    if (!s->lent)
        return;
    stream_channel_close(s->lent);
    stream_fini(&s->stream);
    s->lent = NULL;
}

struct channel *lsocket_lend(lua_State *L, int index, struct str early)
{
    struct lsocket *s = luaL_checkudata(L, index, LSOCKET_METATABLE);

    if (!s->open || s->in.task || s->out.task)
        return NULL;
    lua_pushvalue(L, index);
    s->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    s->L        = vm_of(L)->L;
    s->lent     = stream_channel_new(&s->stream, early, on_released, s);
    s->open     = !s->lent;
    if (!s->lent)
        luaL_unref(L, LUA_REGISTRYINDEX, s->self_ref);
    return s->lent;
}

/* --- TLS -------------------------------------------------------------------------------------------- */

/* core:secure { tls = settings (lua/srv/async/tls.lua), key } -> true | nil, err: TLS from the next byte on. The handshake
 * is a part of the first wait, and KEY that under which sessions are taken up again */
static int socket_secure(lua_State *L)
{
    struct lsocket     *s = luaL_checkudata(L, 1, LSOCKET_METATABLE);
    struct client_tls   settings;
    struct err          err;
    struct http_client *client = env_of(L)->client;

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_argcheck(L, lfetch_read_tls(L, 2, &settings), 2, "no settings of TLS");
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

void lsocket_lend_add(lua_State *L)
{
    luaL_getmetatable(L, LSOCKET_METATABLE);
    lua_pushcfunction(L, socket_secure);
    lua_setfield(L, -2, "secure");
    lua_pop(L, 1);
}
