/* tests/support/ws_app.c - the app that the WebSocket conversations are held with (tests/ws), on the
 * bare wire: no Lua, so what fails here is the wire's.
 *
 *     ws_app [--port N] [--connections N] [--limit BYTES] [--buffer BYTES] [--heartbeat-ms N]
 *
 * Prints "listening on http://127.0.0.1:PORT". SIGTERM closes all sockets with 1001 and ends it when
 * the last has gone.
 *
 *     /ws     echoes each message with its type; speaks the protocol "echo", and deflates if asked
 *     else    404 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"
#include "ev/loop.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/serve.h"
#include "ws/ws.h"
#include "ws/ws_handshake.h"
#include "support/wire_app.h"

struct app {
    struct wire_app   base; /* first: the two are one address */
    struct ws_shared *shared;
    struct ws_options options;
    struct list       sockets;
};

struct socket {
    struct list  link;
    struct ws   *ws;
    struct buf   unsent; /* a message that met WAIT */
    enum ws_kind kind;
};

/* --- sockets ---------------------------------------------------------------------------------------- */

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct socket *socket = ws_arg(ws);

    if (ws_send(ws, kind, data) != WS_WAIT) {
        ws_next(ws);
        return;
    }
    socket->kind = kind;
    buf_add_str(&socket->unsent, data);
}

static void on_room(struct ws *ws)
{
    struct socket *socket = ws_arg(ws);

    if (ws_send(ws, socket->kind, buf_str(&socket->unsent)) == WS_WAIT)
        return;
    buf_fini(&socket->unsent);
    ws_next(ws);
}

static void on_closed(struct ws *ws, unsigned code, struct str reason)
{
    struct socket *socket = ws_arg(ws);

    list_remove(&socket->link);
    buf_fini(&socket->unsent);
    free(socket);
}

static const struct ws_user user = { on_message, on_room, on_closed };

static void open_socket(struct app *app, struct channel *channel, const struct ws_offer *offer)
{
    struct socket    *socket  = malloc(sizeof(*socket));
    struct ws_options options = app->options;

    options.deflate      = offer->deflate.on;
    options.deflate_bits = offer->deflate.bits;
    buf_init(&socket->unsent, SIZE_MAX);
    list_append(&app->sockets, &socket->link);
    if (ws_open(&socket->ws, app->shared, channel, &options, &user, socket) != 0)
        abort();
}

/* --- requests ----------------------------------------------------------------------------------------- */

static void on_gone(struct exchange *ex, enum gone_why why)
{
    exchange_work_let_go(ex);
}

static const struct exchange_work work = { .on_gone = on_gone };

static void answer_text(struct exchange *ex, unsigned status, const char *text)
{
    struct field  version = WS_VERSION_FIELD;
    struct answer answer  = { status, &version, status == 426, STR("text/plain") };

    exchange_answer(ex, &answer, str_of(text));
}

static void upgrade(struct app *app, struct exchange *ex, struct ws_offer *offer)
{
    static const struct str ours = STR_INIT("echo");
    struct field            fields[WS_ANSWER_FIELDS_MAX];
    struct str              protocol = ws_choose_protocol(offer, &ours, 1);
    struct answer           answer   = { .status = 101, .fields = fields };
    struct channel         *channel;

    answer.field_count = ws_answer_fields(offer, protocol, true, fields);
    channel            = exchange_upgrade(ex, STR("websocket"), &answer);
    if (channel)
        open_socket(app, channel, offer);
    else
        answer_text(ex, 503, "no WebSocket now");
}

static void on_request(struct exchange *ex, void *arg)
{
    struct ws_offer offer;
    unsigned        status = 404;

    ex->work     = &work;
    offer.reason = "nothing is here";
    if (str_is(ex->request.path, STR("/ws")))
        status = ws_accepts(&ex->request, &offer);
    if (status)
        answer_text(ex, status, offer.reason);
    else
        upgrade(arg, ex, &offer);
    exchange_work_let_go(ex);
}

/* --- the process ------------------------------------------------------------------------------------------ */

static void on_drained(void *arg)
{
    loop_break(((struct app *)arg)->base.loop);
}

static void on_drain(struct wire_app *base)
{
    struct app *app = container_of(base, struct app, base);

    list_each(node, &app->sockets)
        ws_close(container_of(node, struct socket, link)->ws, WS_CODE_GOING_AWAY, STR("ends"));
}

static void read_options(struct app *app, char **argv, uint64_t *port, uint64_t *connections)
{
    const struct wire_app_number numbers[] = {
        { "--port", port },
        { "--connections", connections },
        { "--limit", &app->options.limit },
        { "--buffer", &app->options.buffer },
        { "--heartbeat-ms", &app->options.heartbeat_ms },
    };

    for (; argv[0] && argv[1]; argv += 2)
        wire_app_take(&app->base, numbers, ARRAY_LEN(numbers), argv);
}

int main(int argc, char **argv)
{
    struct app                 app = { .base    = { .name = "ws_app", .on_drain = on_drain },
                                       .options = { .limit = 1 << 20, .buffer = 1 << 20 } };
    struct http_limits         limits;
    struct http_server_options options = { .limits     = &limits,
                                           .dispatch   = on_request,
                                           .on_drained = on_drained };
    uint64_t                   port = 0, connections = 20000;

    read_options(&app, argv + 1, &port, &connections);
    http_limits_init(&limits);
    limits.connections = (uint32_t)connections;
    list_init(&app.sockets);
    wire_app_open(&app.base);
    if (ws_shared_open(&app.shared, app.base.loop, NULL) < 0)
        return 1;
    wire_app_run(&app.base, options, port);

    wire_app_stop(&app.base);
    ws_shared_close(app.shared);
    wire_app_close(&app.base);
    return 0;
}
