#include "load/load_conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "load/load_out.h"
#include "load/load_state.h"

enum {
    RETRY_MS     = 10, /* after the first failure, then twice as long, */
    RETRY_MS_MAX = 1000,
    READS_MAX    = 16, /* in one turn: a server that never pauses must not hold the thread */
};

static const struct load_plan *plan_of(const struct load_conn *conn)
{
    return conn->thread->shared->plan;
}

static struct load_counts *counts_of(struct load_conn *conn)
{
    return &conn->thread->counts;
}

static struct load_slot *slot_at(struct load_conn *conn, unsigned index)
{
    return &conn->slots[(conn->first + index) % plan_of(conn)->pipelining];
}

static const struct load_request *request_of(struct load_conn *conn, const struct load_slot *slot)
{
    return &plan_of(conn)->requests[slot->request];
}

static void open_again(struct load_conn *conn, bool at_once);

static void end_if_done(struct load_thread *thread)
{
    if (load_thread_is_done(thread))
        load_thread_end(thread);
}

/* --- faults ------------------------------------------------------------------------------------- */

static void count_fault(struct load_conn *conn, enum load_fault fault)
{
    struct load_shared *shared = conn->thread->shared;
    uint64_t            before = atomic_fetch_add(&shared->faults, 1);

    load_count(&counts_of(conn)->faults[fault], 1);
    if (shared->plan->bailout && before + 1 >= shared->plan->bailout) {
        atomic_store(&shared->stopped, true);
        load_thread_end(conn->thread);
    }
}

/* The connection is of no more use: FIRST for the oldest request, REST for those behind it. */
static void fail_all(struct load_conn *conn, enum load_fault first, enum load_fault rest)
{
    for (unsigned i = 0; i < conn->under_way; i++)
        count_fault(conn, i == 0 ? first : rest);
    conn->thread->under_way -= conn->under_way;
    conn->under_way = 0;
    end_if_done(conn->thread);
}

static void drop_stream(struct load_conn *conn)
{
    if (conn->state != LOAD_CONN_CONNECTING && conn->state != LOAD_CONN_UP)
        return;
    stream_fini(&conn->stream);
    timer_stop(&conn->more, conn->thread->loop);
    list_remove(&conn->room);
    load_out_drop(conn);
    conn->state = LOAD_CONN_DOWN;
}

static void break_up(struct load_conn *conn, enum load_fault first, enum load_fault rest)
{
    bool was_useful = conn->issued > conn->under_way;

    fail_all(conn, first, rest);
    drop_stream(conn);
    open_again(conn, was_useful);
}

static enum load_fault why_broken(ssize_t how)
{
    return how == STREAM_FIN ? LOAD_CLOSED : LOAD_RESET;
}

/* --- sending -------------------------------------------------------------------------------------- */

static unsigned next_request(struct load_conn *conn)
{
    const struct load_plan *plan = plan_of(conn);
    unsigned                request;

    do
        request = plan->wheel[conn->step++ % plan->wheel_len];
    while (plan->requests[request].origin != conn->origin);
    return request;
}

static bool may_issue(const struct load_conn *conn)
{
    const struct load_plan   *plan   = plan_of(conn);
    const struct load_thread *thread = conn->thread;

    return conn->state == LOAD_CONN_UP && conn->under_way < plan->pipelining && thread->quota > 0 &&
           !thread->is_over && (!plan->reconnect || conn->issued < plan->reconnect) &&
           (!plan->per_connection || conn->issued_ever < plan->per_connection);
}

static void note_sent(struct load_conn *conn, uint64_t planned_ns, uint64_t now_ns)
{
    struct load_thread *thread = conn->thread;

    if (thread->quota != UINT64_MAX)
        thread->quota--;
    load_count(&thread->counts.sent, 1);
    if (now_ns > planned_ns + LOAD_LATE_US * (uint64_t)NS_PER_US)
        load_count(&thread->counts.late, 1);
}

/* False: the connection broke. */
static bool issue(struct load_conn *conn, struct load_batch *batch, uint64_t planned_ns,
                  uint64_t now_ns)
{
    struct load_slot *slot = slot_at(conn, conn->under_way);

    *slot = (struct load_slot){ planned_ns, now_ns, next_request(conn) };
    conn->under_way++;
    conn->thread->under_way++;
    conn->issued++;
    conn->issued_ever++;
    note_sent(conn, planned_ns, now_ns);
    return load_batch_add(batch, conn, request_of(conn, slot));
}

static bool is_due(struct load_conn *conn, uint64_t now_ns, uint64_t *planned_ns)
{
    struct load_pace *pace = &conn->thread->pace;

    *planned_ns = now_ns;
    return !pace->interval_ns || load_pace_take(pace, now_ns, planned_ns);
}

/* In an open loop whoever has room stands in line for the next moment. */
static void line_up(struct load_conn *conn)
{
    struct load_thread *thread = conn->thread;

    if (!thread->pace.interval_ns || list_is_linked(&conn->room) || !may_issue(conn))
        return;
    if (list_is_empty(&thread->with_room))
        load_pace_wait(&thread->pace);
    list_append(&thread->with_room, &conn->room);
}

/* MOST requests at once. */
static void fill(struct load_conn *conn, uint64_t now_ns, unsigned most)
{
    struct load_batch batch;
    uint64_t          planned_ns;
    bool              is_well = true;

    load_batch_init(&batch);
    list_remove(&conn->room);
    while (is_well && most-- > 0 && may_issue(conn) && is_due(conn, now_ns, &planned_ns))
        is_well = issue(conn, &batch, planned_ns, now_ns);
    is_well = is_well && load_batch_flush(&batch, conn);
    load_batch_fini(&batch);
    if (is_well)
        line_up(conn);
    else
        break_up(conn, LOAD_RESET, LOAD_RESET);
}

void load_conn_fill_one(struct load_conn *conn, uint64_t now_ns)
{
    fill(conn, now_ns, 1);
}

/* --- responses -------------------------------------------------------------------------------------- */

static struct load_conn *conn_of_skim(struct h1_skim *skim)
{
    return container_of(skim, struct load_conn, skim);
}

static void compare_body(struct h1_skim *skim, struct str piece)
{
    struct load_conn          *conn    = conn_of_skim(skim);
    const struct load_request *request = request_of(conn, slot_at(conn, 0));
    size_t                     left    = request->expect.len - conn->body_at;

    if (!request->checks_body || conn->body_differs)
        return;
    if (piece.len > left || memcmp(request->expect.at + conn->body_at, piece.at, piece.len) != 0)
        conn->body_differs = true;
    else
        conn->body_at += piece.len;
}

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns + NS_PER_US / 2) / NS_PER_US : 0;
}

static bool differs(const struct load_conn *conn, const struct load_request *request)
{
    return request->checks_body && (conn->body_differs || conn->body_at < request->expect.len);
}

static void count_answer(struct load_conn *conn, uint64_t now_ns)
{
    struct load_counts     *counts = counts_of(conn);
    const struct load_slot *slot   = slot_at(conn, 0);
    unsigned status = conn->skim.status < LOAD_STATUSES ? conn->skim.status : LOAD_STATUSES - 1;

    load_count(&counts->statuses[status], 1);
    if (differs(conn, request_of(conn, slot)))
        load_count(&counts->mismatched, 1);
    if (!plan_of(conn)->only_ok || status / 100 == 2) {
        hist_add(&counts->latency, us_between(slot->planned_ns, now_ns));
        hist_add(&counts->service, us_between(slot->sent_ns, now_ns));
    }
    conn->first = (conn->first + 1) % plan_of(conn)->pipelining;
    conn->under_way--;
    conn->thread->under_way--;
    conn->body_at      = 0;
    conn->body_differs = false;
    end_if_done(conn->thread);
}

static bool is_used_up(const struct load_conn *conn)
{
    const struct load_plan *plan = plan_of(conn);

    return conn->under_way == 0 &&
           ((plan->reconnect && conn->issued >= plan->reconnect) ||
            (plan->per_connection && conn->issued_ever >= plan->per_connection));
}

/* Behind the last byte of a response. False: the connection is gone. */
static bool go_on(struct load_conn *conn)
{
    if (conn->skim.keep_alive && !is_used_up(conn))
        return true;
    break_up(conn, LOAD_CLOSED, LOAD_CLOSED);
    return false;
}

static bool take_bytes(struct load_conn *conn, const char *bytes, size_t len, uint64_t now_ns)
{
    while (len > 0) {
        size_t           used;
        enum h1_skimming outcome;

        if (conn->under_way == 0) {
            load_count(&counts_of(conn)->unasked, 1);
            break_up(conn, LOAD_MALFORMED, LOAD_CLOSED);
            return false;
        }
        h1_skim_expect(&conn->skim, request_of(conn, slot_at(conn, 0))->is_head);
        outcome = h1_skim_read(&conn->skim, bytes, len, &used);
        if (outcome == H1_SKIM_WRONG) {
            break_up(conn, LOAD_MALFORMED, LOAD_CLOSED);
            return false;
        }
        if (outcome == H1_SKIM_DONE) {
            count_answer(conn, now_ns);
            if (!go_on(conn))
                return false;
        }
        bytes += used;
        len -= used;
    }
    return true;
}

static void take_end(struct load_conn *conn, ssize_t how, uint64_t now_ns)
{
    if (how == STREAM_FIN && conn->under_way > 0 && h1_skim_close(&conn->skim) == H1_SKIM_DONE)
        count_answer(conn, now_ns);
    break_up(conn, why_broken(how), why_broken(how));
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
        load_count(&counts_of(conn)->bytes_in, (uint64_t)n);
        if (!take_bytes(conn, input, (size_t)n, now_ns))
            return false;
        if (conn->under_way > 0)
            stream_read_again(&conn->stream);
    }
    return true;
}

/* --- life -------------------------------------------------------------------------------------------- */

static void note_connected(struct load_conn *conn)
{
    conn->state  = LOAD_CONN_UP;
    conn->issued = 0;
    load_count(&counts_of(conn)->connections, 1);
}

/* The request that was to be the first has nowhere to go. */
static void fail_connect(struct load_conn *conn, enum load_fault fault)
{
    struct load_thread *thread = conn->thread;
    uint64_t            now_ns = clock_mono_ns(), planned_ns;

    drop_stream(conn);
    if (thread->quota > 0 && is_due(conn, now_ns, &planned_ns)) {
        note_sent(conn, planned_ns, now_ns);
        count_fault(conn, fault);
    }
    end_if_done(thread);
    open_again(conn, false);
}

static void on_event(struct stream *stream, void *arg)
{
    struct load_conn *conn   = arg;
    uint64_t          now_ns = clock_mono_ns();

    if (conn->state == LOAD_CONN_CONNECTING) {
        if (stream_is_broken(stream)) {
            fail_connect(conn, LOAD_REFUSED);
            return;
        }
        note_connected(conn);
    }
    if (stream->can_write && !load_out_resume(conn)) {
        break_up(conn, LOAD_RESET, LOAD_RESET);
        return;
    }
    if (read_some(conn, now_ns))
        fill(conn, now_ns, LOAD_PIPELINING_MAX);
}

static void on_more(struct timer *timer)
{
    struct load_conn *conn   = container_of(timer, struct load_conn, more);
    uint64_t          now_ns = clock_mono_ns();

    if (read_some(conn, now_ns))
        fill(conn, now_ns, LOAD_PIPELINING_MAX);
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
    int                 fd     = begin_connect(&plan_of(conn)->origins[conn->origin].addr);

    h1_skim_init(&conn->skim);
    conn->first = conn->under_way = 0;
    conn->body_at                 = 0;
    conn->body_differs            = false;
    conn->connect_ns              = clock_mono_ns();
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
    end_if_done(conn->thread);
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
    const struct load_plan *plan = plan_of(conn);

    if (conn->thread->is_over)
        return;
    if (plan->per_connection && conn->issued_ever >= plan->per_connection) {
        retire(conn);
        return;
    }
    timer_start(&conn->retry, conn->thread->loop, at_once ? 0 : pause_ms(conn));
    conn->failures = at_once ? 0 : conn->failures + 1;
}

void load_conn_check(struct load_conn *conn, uint64_t now_ns)
{
    uint64_t limit_ns = plan_of(conn)->timeout_ms * (uint64_t)NS_PER_MS;

    if (conn->state == LOAD_CONN_CONNECTING && now_ns - conn->connect_ns > limit_ns)
        fail_connect(conn, LOAD_CONNECT_TIMEOUT);
    else if (conn->under_way > 0 && now_ns - slot_at(conn, 0)->sent_ns > limit_ns)
        break_up(conn, LOAD_TIMEOUT, LOAD_CLOSED);
}

/* Else each piece of a body would be looked at for nothing. */
static bool checks_a_body(const struct load_plan *plan)
{
    for (unsigned i = 0; i < plan->request_count; i++)
        if (plan->requests[i].checks_body)
            return true;
    return false;
}

void load_conn_init(struct load_conn *conn, struct load_thread *thread, unsigned number,
                    struct load_slot *slots)
{
    const struct load_plan *plan = thread->shared->plan;

    *conn        = (struct load_conn){ .thread = thread, .slots = slots, .step = number };
    conn->origin = plan->requests[plan->wheel[number % plan->wheel_len]].origin;
    if (checks_a_body(plan))
        conn->skim.on_body = compare_body;
    conn->skim.memo = &thread->memo;
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
