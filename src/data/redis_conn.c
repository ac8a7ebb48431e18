#include "data/redis_conn.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/err.h"
#include "data/fault.h"
#include "data/redis_command.h"
#include "data/redis_reader.h"
#include "data/redis_reply.h"
#include "data/redis_tls.h"
#include "net/tls.h"

enum {
    READ_BYTES      = 16 * 1024,
    TURN_BYTES_MAX  = 256 * 1024, /* then the others of the loop */
    OUT_ROOM_KEPT   = 64 * 1024,
    HELLO_BYTES_MAX = 4096,

    /* A dead machine is found out after IDLE + COUNT * INTERVAL seconds, where no answer is due. */
    KEEPALIVE_IDLE_S     = 30,
    KEEPALIVE_INTERVAL_S = 10,
    KEEPALIVE_COUNT      = 3,
};

/* --- life ---------------------------------------------------------------------------------------- */

static void on_dialled(struct dial *dial);
static void on_limit(struct timer *timer);
static void on_flush(struct later *later);
static void on_more(struct later *later);

void redis_conn_init(struct redis_conn *conn, const struct redis_place *place,
                     const struct redis_conn_events *events)
{
    *conn = (struct redis_conn){ .place = place, .events = events };
    timer_init(&conn->limit, on_limit);
    later_init(&conn->flush, on_flush);
    later_init(&conn->more, on_more);
    buf_init(&conn->hello, HELLO_BYTES_MAX);
    buf_init(&conn->out, REDIS_OUT_BYTES_MAX);
}

void redis_conn_start(struct redis_conn *conn)
{
    const struct redis_target *target = &conn->place->target;
    struct dial_target         to     = { .host       = str_of(target->host),
                                          .port       = target->port,
                                          .path       = target->path[0] ? target->path : NULL,
                                          .timeout_ms = conn->place->connect_ms };

    assert(conn->state == REDIS_CONN_OFF);
    conn->dial     = (struct dial){ .done = on_dialled };
    conn->state    = REDIS_CONN_DIALING;
    conn->began_ms = loop_now_ms(conn->place->loop);
    dial_start(&conn->dial, conn->place->dns, conn->place->loop, &to);
}

static void drop_socket(struct redis_conn *conn)
{
    if (conn->state == REDIS_CONN_DIALING)
        dial_cancel(&conn->dial);
    if (conn->state >= REDIS_CONN_SHAKING)
        stream_fini(&conn->stream);
    redis_reader_close(conn->reader);
    conn->reader = NULL;
    conn->state  = REDIS_CONN_OFF;
}

void redis_conn_close(struct redis_conn *conn)
{
    drop_socket(conn);
    timer_stop(&conn->limit, conn->place->loop);
    later_cancel(&conn->flush);
    later_cancel(&conn->more);
    buf_fini(&conn->hello);
    buf_fini(&conn->out);
    conn->sent      = 0;
    conn->is_paused = false;
}

void redis_conn_fini(struct redis_conn *conn)
{
    redis_conn_close(conn);
}

void redis_conn_fail(struct redis_conn *conn, const struct fault *fault)
{
    redis_conn_close(conn);
    conn->events->on_down(conn, fault);
}

static void fail_because(struct redis_conn *conn, const char *why)
{
    struct fault fault;

    fault_set(&fault, "unavailable", "Redis at %s: %s", conn->place->name, why);
    redis_conn_fail(conn, &fault);
}

/* --- out ------------------------------------------------------------------------------------------- */

static void flush_soon(struct redis_conn *conn)
{
    if (conn->state >= REDIS_CONN_GREETING)
        loop_later(conn->place->loop, &conn->flush);
}

bool redis_conn_send(struct redis_conn *conn, struct str bytes)
{
    assert(conn->state != REDIS_CONN_OFF);
    buf_add_str(&conn->out, bytes);
    if (conn->out.failed) {
        conn->out.failed = false;
        return false;
    }
    flush_soon(conn);
    return true;
}

/* Takes what was sent out of BUF, *SENT bytes of it before. */
static ssize_t send_from(struct stream *stream, struct buf *buf, size_t *sent)
{
    struct iovec piece = { buf->at + *sent, buf->len - *sent };
    ssize_t      n     = stream_writev(stream, &piece, 1);

    if (n <= 0)
        return n;
    *sent += (size_t)n;
    if (*sent == buf->len) {
        buf_clear(buf);
        buf_shrink(buf, OUT_ROOM_KEPT);
        *sent = 0;
    }
    return n;
}

/* Commands stay behind the greeting. After an error the reading side tells of the end. */
static void write_out(struct redis_conn *conn)
{
    size_t hello_sent = 0;

    while (conn->hello.len && conn->stream.can_write) {
        if (send_from(&conn->stream, &conn->hello, &hello_sent) < 0)
            break;
        buf_consume(&conn->hello, hello_sent);
        hello_sent = 0;
    }
    if (conn->hello.len || conn->state != REDIS_CONN_READY)
        return;
    while (conn->out.len > conn->sent && conn->stream.can_write)
        if (send_from(&conn->stream, &conn->out, &conn->sent) < 0)
            break;
    if (conn->sent > conn->out.len / 2 && conn->sent > OUT_ROOM_KEPT) {
        buf_consume(&conn->out, conn->sent);
        conn->sent = 0;
    }
}

static void fail_with_stream(struct redis_conn *conn)
{
    char why[256];

    if (tls_fault(&conn->stream)[0]) {
        snprintf(why, sizeof(why), "TLS: %s", tls_fault(&conn->stream));
        fail_because(conn, why);
        return;
    }
    fail_because(conn, conn->stream.error ? strerror(conn->stream.error)
                                          : "the server closed the connection");
}

static void on_flush(struct later *later)
{
    struct redis_conn *conn = container_of(later, struct redis_conn, flush);

    write_out(conn);
    if (conn->stream.saw_err)
        fail_with_stream(conn);
}

/* --- the greeting -------------------------------------------------------------------------------- */

static void add_command(struct redis_conn *conn, const char *a, const char *b, const char *c)
{
    const char *words[] = { a, b, c };
    size_t      count   = c ? 3 : b ? 2 : 1;

    redis_add_head(&conn->hello, count);
    for (size_t i = 0; i < count; i++)
        redis_add_word(&conn->hello, str_of(words[i]));
    conn->greetings++;
}

static void make_greeting(struct redis_conn *conn)
{
    const struct redis_target *target = &conn->place->target;
    char                       database[16];

    conn->greetings = 0;
    if (target->password[0] && target->user[0])
        add_command(conn, "AUTH", target->user, target->password);
    else if (target->password[0])
        add_command(conn, "AUTH", target->password, NULL);
    if (target->database) {
        snprintf(database, sizeof(database), "%u", target->database);
        add_command(conn, "SELECT", database, NULL);
    }
    add_command(conn, "PING", NULL, NULL);
}

static void become_ready(struct redis_conn *conn)
{
    conn->state = REDIS_CONN_READY;
    timer_stop(&conn->limit, conn->place->loop);
    buf_fini(&conn->hello);
    flush_soon(conn);
    conn->events->on_ready(conn);
}

static void take_greeting(struct redis_conn *conn, const struct buf *reply)
{
    struct str        rest = buf_str(reply);
    struct reply_node node;
    char              why[256];

    if (reply_next(&rest, &node) && node.kind == REPLY_FAULT) {
        snprintf(why, sizeof(why), "the greeting was refused: %.*s", STR_ARG(node.text));
        fail_because(conn, why);
        return;
    }
    if (--conn->greetings == 0)
        become_ready(conn);
}

static void on_limit(struct timer *timer)
{
    struct redis_conn *conn = container_of(timer, struct redis_conn, limit);

    fail_because(
        conn, conn->state == REDIS_CONN_SHAKING
                  ? "the TLS handshake did not end in time: does the server speak TLS on this port?"
                  : "it accepts connections, but does not answer");
}

/* --- TLS --------------------------------------------------------------------------------------------- */

static void begin_greeting(struct redis_conn *conn)
{
    conn->state = REDIS_CONN_GREETING;
    make_greeting(conn);
    flush_soon(conn);
}

static void begin_shaking(struct redis_conn *conn)
{
    struct err err;

    if (redis_tls_begin(conn->place->tls, &conn->stream, &err) != 0)
        fail_because(conn, err.text);
}

/* An event comes when it is over, one way or the other. False: the connection has gone. */
static bool end_shaking(struct redis_conn *conn)
{
    if (tls_info(&conn->stream)) {
        begin_greeting(conn);
        return true;
    }
    redis_tls_forget(conn->place->tls);
    fail_with_stream(conn);
    return false;
}

/* --- in -------------------------------------------------------------------------------------------- */

static void take_reply(struct redis_conn *conn, struct buf *reply)
{
    if (conn->state == REDIS_CONN_GREETING)
        take_greeting(conn, reply);
    else
        conn->events->on_reply(conn, reply);
}

/* False: the connection has gone, perhaps its memory too. */
static bool take_replies(struct redis_conn *conn)
{
    struct redis_reader *reader = conn->reader;
    struct err           err;
    int                  rc = 1;

    redis_reader_enter(reader);
    while (rc > 0 && redis_reader_is_open(reader) && !conn->is_paused) {
        struct buf reply;

        buf_init(&reply, REDIS_REPLY_BYTES_MAX);
        rc = redis_reader_next(reader, &reply, &err);
        if (rc > 0)
            take_reply(conn, &reply);
        buf_fini(&reply);
    }
    if (!redis_reader_leave(reader))
        return false;
    if (rc < 0)
        fail_because(conn, err.text);
    return rc >= 0;
}

/* False: the connection has gone. */
static bool take_bytes(struct redis_conn *conn, const char *bytes, size_t len)
{
    struct err err;

    if (redis_reader_feed(conn->reader, bytes, len, &err) < 0) {
        fail_because(conn, err.text);
        return false;
    }
    return take_replies(conn);
}

/* False: the connection has gone. */
static bool read_in(struct redis_conn *conn)
{
    char   bytes[READ_BYTES];
    size_t total = 0;

    while (!conn->is_paused && conn->stream.can_read) {
        ssize_t n = stream_read(&conn->stream, bytes, sizeof(bytes));

        if (n == STREAM_WAIT)
            break;
        if (n < 0) {
            fail_with_stream(conn);
            return false;
        }
        if (!take_bytes(conn, bytes, (size_t)n))
            return false;
        total += (size_t)n;
        if (total >= TURN_BYTES_MAX) {
            loop_later(conn->place->loop, &conn->more);
            break;
        }
    }
    return true;
}

static void on_more(struct later *later)
{
    struct redis_conn *conn = container_of(later, struct redis_conn, more);

    if (conn->state >= REDIS_CONN_GREETING && take_replies(conn))
        read_in(conn);
}

void redis_conn_resume(struct redis_conn *conn)
{
    if (conn->state >= REDIS_CONN_GREETING)
        loop_later(conn->place->loop, &conn->more);
}

static void on_event(struct stream *stream, void *arg)
{
    struct redis_conn *conn = arg;

    if (conn->state == REDIS_CONN_SHAKING && !end_shaking(conn))
        return;
    if (!read_in(conn))
        return;
    write_out(conn);
    if (stream->saw_err)
        fail_with_stream(conn);
}

/* --- dialled ----------------------------------------------------------------------------------------- */

static void keep_alive(int fd)
{
    int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S, count = KEEPALIVE_COUNT;

    /* A Unix socket has none of them, and needs none. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static uint64_t time_left_ms(const struct redis_conn *conn)
{
    uint64_t used = loop_now_ms(conn->place->loop) - conn->began_ms;

    return used < conn->place->connect_ms ? conn->place->connect_ms - used : 1;
}

static void on_dialled(struct dial *dial)
{
    struct redis_conn *conn = container_of(dial, struct redis_conn, dial);
    struct fault       fault;
    struct err         err;

    if (dial->rc != 0) {
        fault_set(&fault, "unavailable", "Redis at %s", dial->err.text);
        redis_conn_fail(conn, &fault);
        return;
    }
    keep_alive(dial->fd);
    if (stream_init(&conn->stream, conn->place->loop, dial->fd, on_event, conn) < 0) {
        fail_because(conn, "the event loop takes no more sockets");
        return;
    }
    conn->state = REDIS_CONN_SHAKING; /* from here on there is a stream to be closed */
    if (redis_reader_open(&conn->reader, &err) < 0) {
        fail_because(conn, err.text);
        return;
    }
    timer_start(&conn->limit, conn->place->loop, time_left_ms(conn));
    if (conn->place->tls)
        begin_shaking(conn);
    else
        begin_greeting(conn);
}
