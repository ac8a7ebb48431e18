/* The life of a connection: opened, run again and again, ended by a lingering close or a cut.
 *
 * The rule that keeps it safe: only conn_run(), conn_free() and the limit's callback free a
 * connection, and they are called from the loop alone. */
#include "http/conn_life.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "http/conn.h"
#include "http/conn_proxy.h"
#include "http/conn_tls.h"
#include "http/h1.h"
#include "http/h1_channel.h"
#include "http/h2.h"
#include "net/networks.h"

enum {
    LINGER_BYTES_MAX = 4 * 1024 * 1024, /* dropped after our end of the talk */
    LINGER_READS_MAX = 16,              /* in one turn */
    FREE_CONNS_MAX   = 256,
};

_Static_assert(sizeof(struct conn) <= 340, "a connection's cell (CORE, decision 4)");

static const struct conn_protocol *const PROTOCOLS[] = {
    [CONN_H1]         = &h1_protocol,
    [CONN_H1_CHANNEL] = &h1_channel_protocol,
    [CONN_H2]         = &h2_protocol,
};

static const struct conn_protocol *protocol_of(const struct conn *conn)
{
    return PROTOCOLS[conn->speech];
}

/* --- limits --------------------------------------------------------------------------------------------- */

/* The queue that a wait's limit begins in. */
static struct limit_queue *queue_of(struct http_server *server, enum conn_wait wait)
{
    switch (wait) {
    case CONN_WAIT_WORK:
    case CONN_WAIT_HEAD:
    case CONN_WAIT_BODY:
    case CONN_WAIT_CHANNEL: return &server->checks; /* then theirs: see on_check_due() */
    case CONN_WAIT_IDLE: return &server->idles;
    case CONN_WAIT_ROOM: return &server->rooms;
    case CONN_WAIT_HALF_CLOSE: return &server->half_closes;
    case CONN_WAIT_HANDSHAKE: return &server->handshakes;
    case CONN_WAIT_LINGER: break;
    }
    return &server->lingers;
}

static enum conn_wait wait_of(const struct conn *conn)
{
    if (conn->state == CONN_LINGERING)
        return CONN_WAIT_LINGER;
    if (conn->state == CONN_HANDSHAKE)
        return CONN_WAIT_HANDSHAKE;
    if (conn_pending(conn) || conn_has_file(conn))
        return CONN_WAIT_ROOM;
    if (protocol_of(conn)->is_busy(conn))
        return protocol_of(conn)->waits_for(conn);
    if (conn->server->draining && !conn->input)
        return CONN_WAIT_LINGER; /* a new one's first request may be on its way */
    if (conn->state == CONN_HELLO)
        return CONN_WAIT_HANDSHAKE;
    return conn->input || !conn->served ? CONN_WAIT_HEAD : CONN_WAIT_IDLE;
}

/* Bytes that the kernel has still to bring to the client. */
static uint32_t bytes_owed(const struct conn *conn)
{
    int bytes = 0;

    return ioctl(conn->stream.fd, TIOCOUTQ, &bytes) == 0 && bytes > 0 ? (uint32_t)bytes : 0;
}

/* One limit runs, the one that fits; it starts anew only with another wait or after progress. */
static void arm(struct conn *conn)
{
    enum conn_wait wait = wait_of(conn);

    conn->stream.paused = wait == CONN_WAIT_WORK || wait == CONN_WAIT_HALF_CLOSE;
    if (wait == conn->wait && !conn->progress &&
        (conn->checked || list_is_linked(&conn->limit.link)))
        return;
    conn->wait     = wait;
    conn->progress = conn->checked = false;
    if (wait == CONN_WAIT_HALF_CLOSE)
        conn->owed = bytes_owed(conn);
    limit_start(&conn->limit, queue_of(conn->server, wait));
}

/* --- life ------------------------------------------------------------------------------------------- */

static void on_event(struct stream *stream, void *arg)
{
    conn_run(arg);
}

static void on_turn(struct later *turn)
{
    conn_run(container_of(turn, struct conn, turn));
}

static struct conn *take_cell(struct http_server *server)
{
    struct list *node = list_take_first(&server->free_conns);

    if (!node)
        return malloc(sizeof(struct conn));
    server->free_conn_count--;
    return container_of(node, struct conn, link);
}

static void give_cell(struct http_server *server, struct conn *conn)
{
    if (server->free_conn_count == FREE_CONNS_MAX) {
        free(conn);
        return;
    }
    list_prepend(&server->free_conns, &conn->link);
    server->free_conn_count++;
}

static bool is_proxied(const struct http_server *server, const struct addr *peer)
{
    return server->options.proxies && networks_has(server->options.proxies, peer);
}

struct conn *conn_new(struct http_server *server, int fd, const struct addr *peer)
{
    struct conn *conn = take_cell(server);

    if (!conn) {
        close(fd);
        return NULL;
    }
    *conn = (struct conn){ .server = server, .peer = *peer };
    if (stream_init(&conn->stream, server->loop, fd, on_event, conn) < 0) {
        list_init(&conn->link);
        give_cell(server, conn);
        return NULL;
    }
    later_init(&conn->turn, on_turn);
    limit_init(&conn->limit);
    list_append(&server->conns, &conn->link);
    server->conn_count++;
    conn->state = is_proxied(server, peer) ? CONN_PROXIED : conn_tls_first_state(server);
    arm(conn);
    return conn;
}

/* Unread bytes in the kernel make close() send a reset by itself; this asks for one. */
static void ask_for_reset(struct conn *conn)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(conn->stream.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void conn_free(struct conn *conn, enum gone_why why)
{
    struct http_server *server = conn->server;

    conn->running = true; /* what the exchanges still call goes nowhere */
    protocol_of(conn)->lost(conn, why);
    if (conn->must_reset)
        ask_for_reset(conn);
    later_cancel(&conn->turn);
    limit_stop(&conn->limit);
    stream_fini(&conn->stream);
    conn_drop_blocks(conn);
    list_remove(&conn->link);
    give_cell(server, conn);
    if (--server->conn_count == 0 && server->draining)
        loop_later(server->loop, &server->drained);
}

/* --- the end ------------------------------------------------------------------------------------------ */

/* Bytes that the client sent and we do not read make close() a reset, which may overtake the
 * answer. Only a client that asked for the close, and whose request and socket were read to the end,
 * sends no more. */
static bool may_send_more(const struct conn *conn)
{
    if (conn->eof)
        return false;
    return !conn->asked_close || conn->stream.can_read || conn_rest(conn).len > 0;
}

/* All has been written. True: the connection is freed. */
static bool end_conn(struct conn *conn)
{
    if (conn->must_reset || !may_send_more(conn)) {
        if (conn->stream.tls && !conn->must_reset)
            stream_shut(&conn->stream); /* says that this was all, which a FIN cannot */
        conn_free(conn, GONE_CLIENT);
        return true;
    }
    stream_shut(&conn->stream);
    conn->state   = CONN_LINGERING;
    conn->dropped = 0;
    return false;
}

/* Drops what still comes. True: the connection is freed. */
static bool linger(struct conn *conn)
{
    for (unsigned reads = 0; reads < LINGER_READS_MAX; reads++) {
        enum conn_fill fill;

        conn->dropped += (uint32_t)conn_rest(conn).len;
        conn_consume(conn, conn_rest(conn).len);
        fill = conn_fill(conn, CONN_BODY_READ_BYTES);
        if (fill == FILL_NOTHING)
            return false;
        if (fill == FILL_END || conn->dropped > LINGER_BYTES_MAX) {
            conn_free(conn, GONE_CLIENT);
            return true;
        }
    }
    conn->again = true;
    return false;
}

/* --- running ---------------------------------------------------------------------------------------------- */

static bool has_failed(const struct conn *conn)
{
    return conn->stream.saw_err || conn->failed || (conn->output && conn->output->bytes.failed);
}

/* Who has closed resets what still arrives. So bytes that were under way at the FIN tell: taken since,
 * the client listens; not taken, it reads slowly, and has the time of those who do. True: the
 * connection is freed. */
static bool end_half_close(struct conn *conn)
{
    uint32_t owed = bytes_owed(conn);

    conn->due = false;
    if (wait_of(conn) != CONN_WAIT_HALF_CLOSE)
        return false;
    if (stream_is_broken(&conn->stream) || conn->owed == 0 ||
        (owed >= conn->owed && conn->checked)) {
        conn_free(conn, GONE_CLIENT);
        return true;
    }
    if (owed < conn->owed) {
        conn->half_closed = true;
    } else {
        conn->checked = true;
        limit_start(&conn->limit, &conn->server->rooms);
    }
    return false;
}

/* What follows from the state that the protocol has left. */
static void settle(struct conn *conn)
{
    bool all_done = !protocol_of(conn)->is_busy(conn) && !conn->output;

    if (has_failed(conn)) {
        conn_free(conn, GONE_CLIENT);
        return;
    }
    conn_keep_rest(conn);
    if (conn->state == CONN_OPEN && conn->server->draining && all_done && !conn->input &&
        conn->served)
        conn->state = CONN_CLOSING;
    if (conn->state == CONN_CLOSING && all_done && end_conn(conn))
        return;
    if (conn->state == CONN_LINGERING && linger(conn))
        return;
    if (conn->due && end_half_close(conn))
        return;
    arm(conn);
    if (conn->again)
        conn_put_off(conn);
}

/* What is spoken may change, and the new protocol finds what the old one has left unread. */
static void run_protocol(struct conn *conn)
{
    unsigned speech;

    do {
        speech = conn->speech;
        protocol_of(conn)->run(conn);
    } while (conn->speech != speech);
}

void conn_run(struct conn *conn)
{
    struct http_server *server = conn->server;

    assert(!server->rest.len);
    h1_gate_init(&server->gate);
    conn->running = true;
    conn->again   = false;
    if (conn->state == CONN_PROXIED)
        conn_proxy_run(conn);
    if (conn->state == CONN_HELLO || conn->state == CONN_HANDSHAKE)
        conn_tls_run(conn);
    if (conn->state != CONN_LINGERING)
        run_protocol(conn);
    conn->running = false;
    settle(conn);
    server->rest = STR_NONE;
}

/* Those that are put off again while this goes on have the turn after it. */
void conn_on_next_turn(struct timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, next_turn);
    struct list         round;
    struct list        *node;

    list_init(&round);
    list_splice(&round, &server->put_off);
    while ((node = list_take_first(&round)))
        conn_run(container_of(node, struct conn, turn.link));
}

/* --- limits that end ----------------------------------------------------------------------------------------- */

static void on_head_late(struct conn *conn)
{
    if (conn->state == CONN_PROXIED)
        conn_proxy_is_late(conn);
    else
        protocol_of(conn)->head_is_late(conn);
}

static void on_wait_ended(struct conn *conn)
{
    conn->running = true;
    switch ((enum conn_wait)conn->wait) {
    case CONN_WAIT_HEAD: on_head_late(conn); break;
    case CONN_WAIT_BODY: protocol_of(conn)->body_is_late(conn); break;
    case CONN_WAIT_HANDSHAKE: conn_tls_is_late(conn); break;
    case CONN_WAIT_IDLE: conn->state = CONN_CLOSING; break;
    case CONN_WAIT_LINGER: conn->state = CONN_CLOSING; break;
    case CONN_WAIT_WORK:
    case CONN_WAIT_ROOM:
    case CONN_WAIT_HALF_CLOSE:
    case CONN_WAIT_CHANNEL: break;
    }
    conn_run(conn);
}

/* A reset that came together with bytes told of those (net/stream.h), and nothing tells of it while
 * nothing is written. So the kernel is asked once, a moment after the connection began to wait, and
 * not for each request. */
static void on_check_due(struct conn *conn)
{
    conn->checked = true;
    if (stream_is_broken(&conn->stream))
        conn_free(conn, GONE_CLIENT);
    else if (conn->wait == CONN_WAIT_HEAD)
        limit_start(&conn->limit, &conn->server->heads);
    else if (conn->wait == CONN_WAIT_BODY)
        limit_start(&conn->limit, &conn->server->bodies);
}

static bool is_to_be_checked(const struct conn *conn)
{
    return !conn->checked && (conn->wait == CONN_WAIT_WORK || conn->wait == CONN_WAIT_HEAD ||
                              conn->wait == CONN_WAIT_BODY || conn->wait == CONN_WAIT_CHANNEL);
}

/* What ended together with the time, as in a turn that came late, has its say first. */
static void put_off_end(struct conn *conn)
{
    conn->due = true;
    conn_put_off(conn);
}

void conn_on_limit(struct limit *limit)
{
    struct conn *conn = container_of(limit, struct conn, limit);

    if (is_to_be_checked(conn))
        on_check_due(conn);
    else if (conn->state == CONN_LINGERING)
        conn_free(conn, GONE_CLIENT);
    else if (conn->wait == CONN_WAIT_HALF_CLOSE)
        put_off_end(conn);
    else if (conn->wait == CONN_WAIT_ROOM)
        conn_free(conn, GONE_TIMEOUT);
    else
        on_wait_ended(conn);
}
