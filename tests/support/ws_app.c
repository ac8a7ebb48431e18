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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "ev/loop.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/serve.h"
#include "http/ws.h"
#include "http/ws_handshake.h"
#include "net/addr.h"
#include "net/listener.h"

struct app {
    struct loop          *loop;
    struct http_server   *server;
    struct ws_shared     *shared;
    struct ws_options     options;
    struct listener_watch watch;
    struct io             signals;
    struct list           sockets;
};

struct socket {
    struct list  link;
    struct ws   *ws;
    struct buf   unsent; /* a message that met WAIT */
    enum ws_kind kind;
};

static int signal_fd;

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

static void on_accept(int fd, const struct addr *peer, void *arg)
{
    http_server_accept(((struct app *)arg)->server, fd, peer);
}

static void on_drained(void *arg)
{
    loop_break(((struct app *)arg)->loop);
}

static void on_signal(int number)
{
    uint64_t one = 1;

    if (write(signal_fd, &one, sizeof(one)) < 0)
        _exit(1);
}

static void on_signal_told(int fd, short what, void *arg)
{
    struct app *app = arg;

    listener_watch_stop(&app->watch);
    io_stop(&app->signals);
    list_each(node, &app->sockets)
        ws_close(container_of(node, struct socket, link)->ws, WS_CODE_GOING_AWAY, STR("ends"));
    http_server_drain(app->server);
}

static void watch_signals(struct app *app)
{
    signal(SIGPIPE, SIG_IGN);
    signal_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    io_start_level(&app->signals, app->loop, signal_fd, on_signal_told, app);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
}

static struct listener *listen_on(uint64_t port)
{
    struct listener *listener;
    struct addr      at;
    struct err       err;
    char             text[ADDR_TEXT_BYTES];

    if (addr_parse_host(&at, "127.0.0.1", (uint16_t)port, &err) < 0 ||
        listener_open(&listener, &at, 1, &err) < 0) {
        fprintf(stderr, "ws_app: %s\n", err.text);
        exit(1);
    }
    printf("listening on http://%s\n", addr_format(listener_addr(listener), text));
    fflush(stdout);
    return listener;
}

static void read_options(char **argv, struct ws_options *options, uint64_t *port,
                         uint64_t *connections)
{
    const struct {
        const char *name;
        uint64_t   *value;
    } known[] = {
        { "--port", port },
        { "--connections", connections },
        { "--limit", &options->limit },
        { "--buffer", &options->buffer },
        { "--heartbeat-ms", &options->heartbeat_ms },
    };

    for (; argv[0] && argv[1]; argv += 2) {
        unsigned i = 0;

        while (i < ARRAY_LEN(known) && strcmp(known[i].name, argv[0]) != 0)
            i++;
        if (i == ARRAY_LEN(known) || !str_to_u64(str_of(argv[1]), 1 << 30, known[i].value)) {
            fprintf(stderr, "ws_app: %s %s is no option\n", argv[0], argv[1]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct app                 app = { .options = { .limit = 1 << 20, .buffer = 1 << 20 } };
    struct arena_pool          arenas;
    struct http_limits         limits;
    struct http_server_options options;
    struct listener           *listener;
    uint64_t                   port = 0, connections = 20000;

    read_options(argv + 1, &app.options, &port, &connections);
    http_limits_init(&limits);
    limits.connections = (uint32_t)connections;
    if (loop_open(&app.loop, NULL) < 0 || ws_shared_open(&app.shared, app.loop, NULL) < 0)
        return 1;
    arena_pool_init(&arenas, 256);
    list_init(&app.sockets);
    options    = (struct http_server_options){ .loop       = app.loop,
                                               .arenas     = &arenas,
                                               .limits     = &limits,
                                               .dispatch   = on_request,
                                               .on_drained = on_drained,
                                               .arg        = &app };
    app.server = http_server_open(&options);
    watch_signals(&app);
    listener = listen_on(port);
    listener_watch_init(&app.watch, app.loop, on_accept, NULL, &app);
    if (listener_watch_start(&app.watch, listener_fd(listener, 0)) < 0)
        return 1;
    loop_run(app.loop);

    http_server_close(app.server);
    listener_close(listener);
    ws_shared_close(app.shared);
    close(signal_fd);
    arena_pool_fini(&arenas);
    loop_close(app.loop);
    return 0;
}
