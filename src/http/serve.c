#include "http/serve.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "http/conn.h"
#include "http/conn_life.h"
#include "http/h1.h"
#include "http/h1_parse.h"
#include "http/h2.h"

enum {
    CHECK_MS    = 50,   /* until a hidden reset is looked for (http/conn_life.c: has_reset()) */
    LINGER_MS   = 1000, /* after our FIN (CORE, decision 20) */
    REFUSED_MAX = 64,   /* connections over the limit that get a 503 at the same time */
};

/* --- life -------------------------------------------------------------------------------------------- */

static void on_drained(struct later *later)
{
    struct http_server *server = container_of(later, struct http_server, drained);

    if (server->conn_count == 0 && server->options.on_drained)
        server->options.on_drained(server->options.arg);
}

static void init_queues(struct http_server *server)
{
    const struct http_limits *limits = &server->limits;
    struct loop              *loop   = server->loop;

    limit_queue_init(&server->checks, loop, CHECK_MS, conn_on_limit);
    limit_queue_init(&server->heads, loop, limits->head_ms, conn_on_limit);
    limit_queue_init(&server->idles, loop, limits->keep_alive_ms, conn_on_limit);
    limit_queue_init(&server->bodies, loop, limits->body_ms, conn_on_limit);
    limit_queue_init(&server->rooms, loop, limits->write_ms, conn_on_limit);
    limit_queue_init(&server->half_closes, loop, limits->half_close_ms, conn_on_limit);
    limit_queue_init(&server->lingers, loop, LINGER_MS, conn_on_limit);
    limit_queue_init(&server->handshakes, loop, limits->handshake_ms, conn_on_limit);
}

struct http_server *http_server_open(const struct http_server_options *options)
{
    struct http_server *server = calloc(1, sizeof(*server));

    if (!server)
        abort();
    h1_parse_init();
    server->loop           = options->loop;
    server->options        = *options;
    server->limits         = *options->limits;
    server->options.limits = &server->limits;
    server->head_limits = (struct h1_limits){ server->limits.line_bytes, server->limits.head_bytes,
                                              server->limits.head_fields };
    clock_date_init(&server->date);
    list_init(&server->conns);
    list_init(&server->free_conns);
    later_init(&server->drained, on_drained);
    list_init(&server->put_off);
    timer_init(&server->next_turn, conn_on_next_turn);
    init_queues(server);
    return server;
}

/* --- connections --------------------------------------------------------------------------------------- */

static bool is_full(const struct http_server *server)
{
    return server->conn_count >= server->limits.connections;
}

/* A 503 is not worth a handshake, the dearest that a client can ask for. */
static void refuse_silently(struct http_server *server, int fd, const struct addr *peer)
{
    struct http_refusal refusal = { .kind   = REFUSED_HANDSHAKE,
                                    .reason = "too many connections",
                                    .peer   = peer };

    close(fd);
    if (server->options.on_refused)
        server->options.on_refused(&refusal, server->options.arg);
}

static void refuse(struct http_server *server, int fd, const struct addr *peer)
{
    static const struct h1_fault full = { 503, "too many connections" };
    struct conn                 *conn;

    if (server->options.tls) {
        refuse_silently(server, fd, peer);
        return;
    }
    if (server->conn_count >= server->limits.connections + REFUSED_MAX) {
        close(fd);
        return;
    }
    conn = conn_new(server, fd, peer);
    if (!conn)
        return;
    h1_refuse(conn, &full);
    conn_wake(conn);
}

void http_server_accept(struct http_server *server, int fd, const struct addr *peer)
{
    if (is_full(server))
        refuse(server, fd, peer);
    else
        conn_new(server, fd, peer);
}

void http_server_use_tls(struct http_server *server, struct tls_server *tls)
{
    server->options.tls = tls;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->conn_count;
}

unsigned http_server_load(const struct http_server *server)
{
    return server->conn_count + server->stream_count;
}

uint64_t http_server_requests(const struct http_server *server)
{
    return server->requests;
}

/* --- the end -------------------------------------------------------------------------------------------- */

void http_server_drain(struct http_server *server)
{
    server->draining = true;
    if (!server->conn_count)
        loop_later(server->loop, &server->drained);
    list_each(node, &server->conns) conn_wake(container_of(node, struct conn, link));
}

void http_server_cut_handshakes(struct http_server *server)
{
    list_each_safe(node, &server->conns)
    {
        struct conn *conn = container_of(node, struct conn, link);

        if (conn->state == CONN_PROXIED || conn->state == CONN_HELLO ||
            conn->state == CONN_HANDSHAKE)
            conn_free(conn, GONE_SHUTDOWN);
    }
}

static void free_kept(struct http_server *server)
{
    struct list *node;

    while ((node = list_take_first(&server->free_conns)))
        free(container_of(node, struct conn, link));
    conn_free_blocks(server);
}

static void fini_queues(struct http_server *server)
{
    limit_queue_fini(&server->checks);
    limit_queue_fini(&server->heads);
    limit_queue_fini(&server->idles);
    limit_queue_fini(&server->bodies);
    limit_queue_fini(&server->rooms);
    limit_queue_fini(&server->half_closes);
    limit_queue_fini(&server->lingers);
    limit_queue_fini(&server->handshakes);
}

void http_server_close(struct http_server *server)
{
    if (!server)
        return;
    while (!list_is_empty(&server->conns))
        conn_free(container_of(server->conns.next, struct conn, link), GONE_SHUTDOWN);
    later_cancel(&server->drained);
    timer_stop(&server->next_turn, server->loop);
    fini_queues(server);
    h2_free_shared(server->h2);
    free_kept(server);
    free(server);
}
