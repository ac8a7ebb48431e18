#include "load/load_conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "load/load_account.h"
#include "load/load_h1.h"
#include "load/load_h2.h"
#include "load/load_out.h"
#include "load/load_state.h"
#include "load/load_tls.h"
#include "load/load_ws.h"

enum {
    RETRY_MS     = 10, /* after the first failure, then twice as long, */
    RETRY_MS_MAX = 1000,
    READS_MAX    = 16, /* in one turn: a server that never pauses must not hold the thread */
};

static void open_again(struct load_conn *conn, bool at_once);

/* --- faults ------------------------------------------------------------------------------------- */

static void drop_stream(struct load_conn *conn)
{
    if (conn->state == LOAD_CONN_DOWN || conn->state == LOAD_CONN_RETIRED)
        return;
    conn->protocol->leave(conn);
    stream_fini(&conn->stream);
    timer_stop(&conn->more, conn->thread->loop);
    list_remove(&conn->room);
    load_out_drop(conn);
    conn->state = LOAD_CONN_DOWN;
}

/* The request that was to be the first has nowhere to go. */
static void fail_connect(struct load_conn *conn, enum load_fault fault)
{
    struct load_thread *thread = conn->thread;
    uint64_t            now_ns = clock_mono_ns(), planned_ns;

    drop_stream(conn);
    if (thread->quota > 0 && load_account_is_due(conn, now_ns, &planned_ns))
        load_account_unsent(conn, fault, planned_ns, now_ns);
    load_account_end_if_done(thread);
    open_again(conn, false);
}

/* What no connection has ever got over will not go away by trying again: TEXT says what, and the load
 * is over. */
static void give_up(struct load_conn *conn, const char *text)
{
    struct load_shared *shared = conn->thread->shared;

    if (!atomic_exchange(&shared->has_failed, true))
        err_set(&shared->failure, ERR_UNSUPPORTED, "%s", text);
    atomic_store(&shared->stopped, true);
    load_thread_end(conn->thread);
    drop_stream(conn);
}

static bool has_been_up(const struct load_conn *conn)
{
    return atomic_load_explicit(&conn->thread->shared->has_been_up, memory_order_relaxed);
}

/* If connections have got over it before, it is a fault like others. */
static void fail_for(struct load_conn *conn, enum load_fault fault, const char *text)
{
    if (has_been_up(conn))
        fail_connect(conn, fault);
    else
        give_up(conn, text);
}

/* What came is not the protocol that was asked for. */
static void fail_greeting(struct load_conn *conn, enum load_fault fault)
{
    const char *why = conn->protocol->why ? conn->protocol->why(conn) : NULL;

    if (why && fault != LOAD_RESET)
        fail_for(conn, fault, why);
    else
        fail_connect(conn, fault);
}

/* FAULT is the oldest request's; none of those behind it has timed out, or was malformed. */
static void break_up(struct load_conn *conn, enum load_fault fault)
{
    bool was_useful = conn->issued > conn->under_way;

    if (conn->state == LOAD_CONN_GREETING) {
        fail_greeting(conn, fault);
        return;
    }
    load_account_fault_all(conn, fault, fault == LOAD_RESET ? LOAD_RESET : LOAD_CLOSED);
    drop_stream(conn);
    open_again(conn, was_useful);
}

/* False: the connection is gone. */
static bool is_well(struct load_conn *conn, enum load_fault fault)
{
    if (fault == LOAD_WELL)
        return true;
    break_up(conn, fault);
    return false;
}

/* --- sending -------------------------------------------------------------------------------------- */

/* In an open loop whoever has room stands in line for the next moment. */
static void line_up(struct load_conn *conn)
{
    struct load_thread *thread = conn->thread;

    if (!thread->pace.interval_ns || list_is_linked(&conn->room) || !load_account_may_issue(conn))
        return;
    if (list_is_empty(&thread->with_room))
        load_pace_wait(&thread->pace);
    list_append(&thread->with_room, &conn->room);
}

/* MOST requests at once. */
static void fill(struct load_conn *conn, uint64_t now_ns, unsigned most)
{
    list_remove(&conn->room);
    if (conn->state == LOAD_CONN_UP && is_well(conn, conn->protocol->fill(conn, now_ns, most)))
        line_up(conn);
}

void load_conn_fill_one(struct load_conn *conn, uint64_t now_ns)
{
    fill(conn, now_ns, 1);
}

/* --- reading ---------------------------------------------------------------------------------------- */

static void note_up(struct load_conn *conn)
{
    conn->state = LOAD_CONN_UP;
    load_count(&conn->thread->counts.connections, 1);
}

/* A client of TLS 1.3 is through with the handshake before the server has looked at its certificate: it
 * has got over that when the server talks. */
static void note_talk(struct load_conn *conn)
{
    if (!has_been_up(conn) && conn->protocol->is_ready(conn))
        atomic_store_explicit(&conn->thread->shared->has_been_up, true, memory_order_relaxed);
}

static void take_end(struct load_conn *conn, ssize_t how, uint64_t now_ns)
{
    struct err err;

    if (how == STREAM_FIN)
        conn->protocol->end(conn, now_ns);
    else if (!has_been_up(conn) && load_tls_is_hopeless(conn, &err)) {
        give_up(conn, err.text);
        return;
    }
    break_up(conn, how == STREAM_FIN ? LOAD_CLOSED : LOAD_RESET);
}

/* What has come, or a turn's share of it. False: the connection is gone. */
static bool read_some(struct load_conn *conn, uint64_t now_ns)
{
    char *input = conn->thread->input;

    for (unsigned reads = 0; conn->stream.can_read; reads++) {
        ssize_t n;

        if (reads == READS_MAX) {
            timer_start(&conn->more, conn->thread->loop, 0);
            return true;
        }
        n = stream_read(&conn->stream, input, LOAD_INPUT_BYTES);
        if (n == STREAM_WAIT)
            return true;
        if (n <= 0) {
            take_end(conn, n, now_ns);
            return false;
        }
        load_count(&conn->thread->counts.bytes_in, (uint64_t)n);
        if (!is_well(conn, conn->protocol->take(conn, input, (size_t)n, now_ns)))
            return false;
        note_talk(conn);
        if (conn->under_way > 0)
            stream_read_again(&conn->stream);
    }
    return true;
}

static void go_on(struct load_conn *conn)
{
    uint64_t now_ns = clock_mono_ns();

    if (conn->stream.can_write && !is_well(conn, conn->protocol->resume(conn)))
        return;
    if (!read_some(conn, now_ns))
        return;
    if (conn->state == LOAD_CONN_GREETING && conn->protocol->is_ready(conn))
        note_up(conn);
    fill(conn, now_ns, LOAD_PIPELINING_MAX);
}

/* --- life -------------------------------------------------------------------------------------------- */

static void greet(struct load_conn *conn)
{
    conn->state = LOAD_CONN_GREETING;
    if (is_well(conn, conn->protocol->begin(conn)))
        go_on(conn);
}

static void shake(struct load_conn *conn)
{
    struct err err;

    conn->state = LOAD_CONN_SHAKING;
    if (load_tls_begin(conn, &err) != 0)
        fail_for(conn, LOAD_TLS, err.text);
}

/* The handshake is over, one way or the other. */
static void shaken(struct load_conn *conn)
{
    struct err err;

    if (load_tls_is_hopeless(conn, &err))
        fail_for(conn, LOAD_TLS, err.text);
    else if (tls_info(&conn->stream))
        greet(conn);
    else
        fail_connect(conn, LOAD_TLS);
}

static void connected(struct load_conn *conn)
{
    if (stream_is_broken(&conn->stream))
        fail_connect(conn, LOAD_REFUSED);
    else if (load_tls_is_wanted(conn))
        shake(conn);
    else
        greet(conn);
}

static void on_event(struct stream *stream, void *arg)
{
    struct load_conn *conn = arg;

    switch (conn->state) {
    case LOAD_CONN_CONNECTING: connected(conn); break;
    case LOAD_CONN_SHAKING: shaken(conn); break;
    default: go_on(conn);
    }
}

static void on_more(struct timer *timer)
{
    go_on(container_of(timer, struct load_conn, more));
}

static int begin_connect(const struct addr *addr)
{
    struct sockaddr_storage to;
    socklen_t               len = addr_to_sockaddr(addr, &to);
    int one = 1, fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (to.ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

void load_conn_open(struct load_conn *conn)
{
    struct load_thread *thread = conn->thread;
    int                 fd     = begin_connect(&load_plan_of(conn)->origins[conn->origin].addr);

    conn->connect_ns = clock_mono_ns();
    conn->issued     = 0;
    if (fd < 0 || stream_init(&conn->stream, thread->loop, fd, on_event, conn) != 0) {
        fail_connect(conn, LOAD_REFUSED);
        return;
    }
    conn->state            = LOAD_CONN_CONNECTING;
    conn->stream.can_write = false; /* its first edge tells that it is connected */
}

static void on_retry(struct timer *timer)
{
    load_conn_open(container_of(timer, struct load_conn, retry));
}

static void retire(struct load_conn *conn)
{
    conn->state = LOAD_CONN_RETIRED;
    conn->thread->retired++;
    load_account_end_if_done(conn->thread);
}

static uint64_t pause_ms(const struct load_conn *conn)
{
    uint64_t pause = (uint64_t)RETRY_MS << (conn->failures < 8 ? conn->failures : 8);

    return pause < RETRY_MS_MAX ? pause : RETRY_MS_MAX;
}

/* Never from within itself: whoever closes each connection as it comes would have us go round for
 * ever. */
static void open_again(struct load_conn *conn, bool at_once)
{
    const struct load_plan *plan = load_plan_of(conn);

    if (conn->thread->is_over)
        return;
    if (plan->per_connection && conn->issued_ever >= plan->per_connection) {
        retire(conn);
        return;
    }
    timer_start(&conn->retry, conn->thread->loop, at_once ? 0 : pause_ms(conn));
    conn->failures = at_once ? 0 : conn->failures + 1;
}

static bool is_coming_up(const struct load_conn *conn)
{
    return conn->state != LOAD_CONN_DOWN && conn->state != LOAD_CONN_UP &&
           conn->state != LOAD_CONN_RETIRED;
}

static void check_requests(struct load_conn *conn, uint64_t now_ns, uint64_t late_ns)
{
    unsigned under_way = conn->under_way;

    if (is_well(conn, conn->protocol->check(conn, late_ns)) && conn->under_way < under_way)
        fill(conn, now_ns, LOAD_PIPELINING_MAX);
}

void load_conn_check(struct load_conn *conn, uint64_t now_ns)
{
    uint64_t limit_ns = load_plan_of(conn)->timeout_ms * (uint64_t)NS_PER_MS;
    uint64_t late_ns  = now_ns > limit_ns ? now_ns - limit_ns : 0;

    if (conn->state == LOAD_CONN_UP)
        check_requests(conn, now_ns, late_ns);
    else if (is_coming_up(conn) && conn->connect_ns < late_ns)
        fail_connect(conn, LOAD_CONNECT_TIMEOUT);
}

static const struct load_protocol *const PROTOCOLS[] = {
    [LOAD_SPEAKS_H1] = &LOAD_H1,
    [LOAD_SPEAKS_H2] = &LOAD_H2,
    [LOAD_SPEAKS_WS] = &LOAD_WS,
};

void load_conn_init(struct load_conn *conn, struct load_thread *thread, unsigned number,
                    struct load_slot *slots)
{
    const struct load_plan *plan = thread->shared->plan;

    *conn          = (struct load_conn){ .thread = thread, .slots = slots, .step = number };
    conn->protocol = PROTOCOLS[plan->speech];
    conn->origin   = plan->requests[plan->wheel[number % plan->wheel_len]].origin;
    buf_init(&conn->out, LOAD_OUT_BYTES_MAX);
    list_init(&conn->room);
    timer_init(&conn->retry, on_retry);
    timer_init(&conn->more, on_more);
}

void load_conn_close(struct load_conn *conn)
{
    timer_stop(&conn->retry, conn->thread->loop);
    drop_stream(conn);
    buf_fini(&conn->out);
}
