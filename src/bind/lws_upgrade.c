#include "bind/lws_upgrade.h"

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lhead.h"
#include "bind/lhttp_state.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "bind/lws_head.h"
#include "bind/lws_rules.h"
#include "bind/lws_socket.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "ws/ws_handshake.h"

#define PROTOCOL STR("websocket")

/* --- the request --------------------------------------------------------------------------------- */

static unsigned judge(const struct request *request, struct ws_offer *offer)
{
    if (str_is_nocase(request->upgrade, PROTOCOL))
        return ws_accepts(request, offer);
    offer->reason = "only a WebSocket is here: ask for it with Upgrade: websocket";
    return 426;
}

/* RFC 9110, 15.5.22; RFC 6455, 4.4. `Upgrade` is no field that an app may set. */
static void name_protocol(struct lcall *call)
{
    const struct field fields[] = { { STR("Upgrade"), PROTOCOL, FIELD_CHECKED },
                                    { STR("Sec-WebSocket-Version"), STR("13"), FIELD_CHECKED } };
    struct err         err;

    lhead_add_checked(call, fields, 2, &err); /* without memory, the status says enough */
}

/* fault(req) -> nothing: it asks for a WebSocket as it should | status, reason */
static int handshake_fault(lua_State *L)
{
    struct lcall   *call = lcall_check(L, 1);
    struct ws_offer offer;
    unsigned        status = judge(&call->ex->request, &offer);

    if (status == 0)
        return 0;
    if (status == 426)
        name_protocol(call);
    lua_pushinteger(L, (lua_Integer)status);
    lua_pushstring(L, offer.reason);
    return 2;
}

/* asked(req) -> what it asks to switch to, "websocket", or nil */
static int handshake_asked(lua_State *L)
{
    struct str protocol = lcall_check(L, 1)->ex->request.upgrade;

    return lstr_push_or_nil(L, protocol.len ? protocol : STR_NONE);
}

/* --- the socket ------------------------------------------------------------------------------------- */

static int find_protocol(const struct lws_rules *rules, const struct request *request)
{
    struct ws_offer offer;
    struct str      chosen;

    if (ws_accepts(request, &offer) != 0)
        return -1;
    chosen = ws_choose_protocol(&offer, rules->protocols, rules->protocol_count);
    return lws_rules_protocol(rules, chosen);
}

static uint64_t time_limit(const struct lcall *call)
{
    if (call->route && call->route->timeout_ms)
        return call->route->timeout_ms;
    return call->http->options.timeout_ms;
}

/* socket(req, rules) -> ws: not open until it is the answer */
static int make_socket(lua_State *L)
{
    struct lcall     *call  = lcall_check(L, 1);
    struct lws_rules *rules = lws_rules_check(L, 2);
    struct lws       *socket;

    if (!env_of(L)->sockets)
        return lerror_misuse(L, "app:ws: there is no server in this state");
    socket             = lws_socket_new(L, sizeof(*socket), rules);
    socket->protocol   = find_protocol(rules, &call->ex->request);
    socket->timeout_ms = (uint32_t)time_limit(call);
    socket->head       = lws_head_new(call);
    if (!socket->head)
        return luaL_error(L, "not enough memory");
    socket->label = lws_head_label(socket->head);
    return 1;
}

/* --- the switch --------------------------------------------------------------------------------------- */

struct channel *lws_upgrade_channel(struct lcall *call, struct ws_offer *offer, struct str protocol,
                                    bool deflate)
{
    struct field  fields[WS_ANSWER_FIELDS_MAX];
    unsigned      count = ws_answer_fields(offer, protocol, deflate, fields);
    struct answer answer;
    struct err    err;

    if (lhead_add_checked(call, fields, count, &err) != 0)
        return NULL;
    lhead_fill(call, &answer);
    answer.content_type = STR_NONE;
    return exchange_upgrade(call->ex, PROTOCOL, &answer);
}

static struct channel *switch_over(struct lcall *call, const struct lws *socket,
                                   struct ws_offer *offer)
{
    const struct lws_rules *rules = socket->rules;
    struct str protocol = socket->protocol < 0 ? STR("") : rules->protocols[socket->protocol];

    return lws_upgrade_channel(call, offer, protocol, rules->compresses);
}

static void open_socket(const struct lcall *call, struct lws *socket, struct channel *channel,
                        const struct ws_deflate *deflate)
{
    struct ws_options options = socket->rules->options;

    options.deflate      = deflate->on;
    options.deflate_bits = deflate->bits;
    if (!lws_socket_open(socket, channel, &options)) {
        lws_socket_drop(socket);
        return;
    }
    lws_socket_start(socket);
    if (call->site->ends_events)
        lws_talk_close(socket, WS_CODE_RESTART, STR("service restart"));
}

bool lws_upgrade(struct lcall *call, lua_State *L, int index)
{
    struct lws     *socket = lua_touserdata(L, index);
    struct channel *channel;
    struct ws_offer offer;

    lws_socket_hold(socket, L, index);
    channel = judge(&call->ex->request, &offer) == 0 ? switch_over(call, socket, &offer) : NULL;
    if (channel)
        open_socket(call, socket, channel, &offer.deflate);
    else
        lws_socket_drop(socket);
    return channel != NULL;
}

void lws_upgrade_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "asked", handshake_asked },
                                          { "fault", handshake_fault },
                                          { "socket", make_socket },
                                          { NULL, NULL } };

    luaL_register(L, NULL, FUNCTIONS);
}
