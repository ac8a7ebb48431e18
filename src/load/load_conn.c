#include "load/load_conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "load/load_state.h"

enum {
    PIECES_MAX    = 64, /* requests in one write */
    RETRY_MS      = 10, /* after the first failure, then twice as long, */
    RETRY_MS_MAX  = 1000,
    OUT_BYTES_MAX = 1 << 30, /* what is under way and not taken: requests times pipelining */
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

/* --- faults ------------------------------------------------------------------------------------- */

static void count_fault(struct load_conn *conn, enum load_fault fault)
{
    struct load_shared *shared = conn->thread->shared;
    uint64_t            before = atomic_fetch_add(&shared->faults, 1);

    load_count(&counts_of(conn)->faults[fault], 1);
    if (shared->plan->bailout && before + 1 >= shared->plan->bailout)
        atomic_store(&shared->stopped, true);
}

/* The connection is of no more use: FIRST for the oldest request, REST for those behind it. */
static void fail_all(struct load_conn *conn, enum load_fault first, enum load_fault rest)
{
    for (unsigned i = 0; i < conn->under_way; i++)
        count_fault(conn, i == 0 ? first : rest);
    conn->under_way = 0;
}

static void drop_stream(struct load_conn *conn)
{
    if (conn->state != LOAD_CONN_CONNECTING && conn->state != LOAD_CONN_UP)
        return;
    stream_fini(&conn->stream);
    list_remove(&conn->room);
    buf_clear(&conn->out);
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

/* Requests that go out in one write. */
struct batch {
    struct iovec pieces[PIECES_MAX];
    int          count;
    struct buf   copies; /* of requests with an id of their own */
};

static void keep_rest(struct load_conn *conn, struct iovec *pieces, int count, size_t taken)
{
    for (int i = 0; i < count; i++) {
        size_t skip = taken < pieces[i].iov_len ? taken : pieces[i].iov_len;

        buf_add(&conn->out, (char *)pieces[i].iov_base + skip, pieces[i].iov_len - skip);
        taken -= skip;
    }
}

/* False: the connection is broken, and has been taken care of. */
static bool write_pieces(struct load_conn *conn, struct iovec *pieces, int count)
{
    ssize_t n = conn->stream.can_write ? stream_writev(&conn->stream, pieces, count) : STREAM_WAIT;

    if (n == STREAM_FAIL) {
        break_up(conn, LOAD_RESET, LOAD_RESET);
        return false;
    }
    if (n > 0)
        load_count(&counts_of(conn)->bytes_out, (uint64_t)n);
    keep_rest(conn, pieces, count, n > 0 ? (size_t)n : 0);
    return true;
}

static bool flush(struct load_conn *conn, struct batch *batch)
{
    int count = batch->count;

    batch->count = 0;
    if (count == 0)
        return true;
    if (conn->out.len) {
        keep_rest(conn, batch->pieces, count, 0);
        return true;
    }
    return write_pieces(conn, batch->pieces, count);
}

static bool flush_out(struct load_conn *conn)
{
    struct buf   waiting = conn->out;
    struct iovec piece   = { waiting.at, waiting.len };
    bool         is_well;

    if (!waiting.len)
        return true;
    buf_init(&conn->out, OUT_BYTES_MAX);
    is_well = write_pieces(conn, &piece, 1);
    buf_fini(&waiting);
    return is_well;
}

/* LOAD_ID_BYTES of digits and letters that no other request of this process has. */
static void write_id(struct load_thread *thread, char *to)
{
    char text[LOAD_ID_BYTES + 1];

    snprintf(text, sizeof(text), "%05x-%04x-%016llx", (unsigned)getpid() & 0xfffff,
             thread->index & 0xffff, (unsigned long long)thread->next_id++);
    memcpy(to, text, LOAD_ID_BYTES);
}

static struct str with_ids(struct load_conn *conn, const struct load_request *request,
                           struct buf *copies)
{
    char *copy = buf_reserve(copies, request->bytes.len);

    if (!copy)
        abort();
    memcpy(copy, request->bytes.at, request->bytes.len);
    for (unsigned i = 0; i < request->id_count; i++)
        write_id(conn->thread, copy + request->ids[i]);
    return str_make(copy, request->bytes.len);
}

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
static bool issue(struct load_conn *conn, struct batch *batch, uint64_t planned_ns, uint64_t now_ns)
{
    struct load_slot          *slot = slot_at(conn, conn->under_way);
    const struct load_request *request;
    struct str                 bytes;

    *slot   = (struct load_slot){ planned_ns, now_ns, next_request(conn) };
    request = request_of(conn, slot);
    bytes   = request->bytes;
    if (request->id_count)
        bytes = with_ids(conn, request, &batch->copies);
    conn->under_way++;
    conn->issued++;
    conn->issued_ever++;
    note_sent(conn, planned_ns, now_ns);
    batch->pieces[batch->count++] = (struct iovec){ (void *)bytes.at, bytes.len };
    return batch->count < PIECES_MAX && !request->id_count ? true : flush(conn, batch);
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
    struct batch batch;
    uint64_t     planned_ns;
    bool         is_well = true;

    batch.count = 0;
    buf_init(&batch.copies, OUT_BYTES_MAX);
    list_remove(&conn->room);
    while (is_well && most-- > 0 && may_issue(conn) && is_due(conn, now_ns, &planned_ns))
        is_well = issue(conn, &batch, planned_ns, now_ns);
    if (is_well)
        is_well = flush(conn, &batch);
    buf_fini(&batch.copies);
    if (is_well)
        line_up(conn);
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
    conn->body_at      = 0;
    conn->body_differs = false;
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

        if (conn->under_way == 0) { /* nobody asked for this */
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

/* False: the connection is gone. */
static bool read_all(struct load_conn *conn, uint64_t now_ns)
{
    char *input = conn->thread->input;

    while (conn->stream.can_read) {
        ssize_t n = stream_read(&conn->stream, input, LOAD_INPUT_BYTES);

        if (n == STREAM_WAIT)
            return true;
        if (n <= 0) {
            take_end(conn, n, now_ns);
            return false;
        }
        load_count(&counts_of(conn)->bytes_in, (uint64_t)n);
        if (!take_bytes(conn, input, (size_t)n, now_ns))
            return false;
    }
    return true;
}

/* --- life -------------------------------------------------------------------------------------------- */

static void note_connected(struct load_conn *conn)
{
    conn->state    = LOAD_CONN_UP;
    conn->failures = 0;
    conn->issued   = 0;
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
    open_again(conn, false);
}

static int pending_error(int fd)
{
    int       number = 0;
    socklen_t len    = sizeof(number);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) < 0 ? errno : number;
}

static void on_event(struct stream *stream, void *arg)
{
    struct load_conn *conn   = arg;
    uint64_t          now_ns = clock_mono_ns();

    if (conn->state == LOAD_CONN_CONNECTING) {
        if (stream->error || pending_error(stream->fd) != 0) {
            fail_connect(conn, LOAD_REFUSED);
            return;
        }
        note_connected(conn);
    }
    if (stream->can_write && !flush_out(conn))
        return;
    if (read_all(conn, now_ns))
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
}

/* Never at once from within itself: whoever closes each connection as it comes would have us go round
 * for ever. */
static void open_again(struct load_conn *conn, bool at_once)
{
    const struct load_plan *plan  = plan_of(conn);
    unsigned                shift = conn->failures < 8 ? conn->failures : 8;
    uint64_t                pause = (uint64_t)RETRY_MS << shift;

    if (conn->thread->is_over)
        return;
    if (plan->per_connection && conn->issued_ever >= plan->per_connection) {
        retire(conn);
        return;
    }
    if (!at_once)
        conn->failures++;
    timer_start(&conn->retry, conn->thread->loop,
                at_once                ? 0
                : pause < RETRY_MS_MAX ? pause
                                       : RETRY_MS_MAX);
}

void load_conn_check(struct load_conn *conn, uint64_t now_ns)
{
    uint64_t limit_ns = plan_of(conn)->timeout_ms * (uint64_t)NS_PER_MS;

    if (conn->state == LOAD_CONN_CONNECTING && now_ns - conn->connect_ns > limit_ns)
        fail_connect(conn, LOAD_CONNECT_TIMEOUT);
    else if (conn->under_way > 0 && now_ns - slot_at(conn, 0)->sent_ns > limit_ns)
        break_up(conn, LOAD_TIMEOUT, LOAD_CLOSED);
}

void load_conn_init(struct load_conn *conn, struct load_thread *thread, unsigned number,
                    struct load_slot *slots)
{
    const struct load_plan *plan = thread->shared->plan;

    *conn              = (struct load_conn){ .thread = thread, .slots = slots, .step = number };
    conn->origin       = plan->requests[plan->wheel[number % plan->wheel_len]].origin;
    conn->skim.on_body = compare_body;
    buf_init(&conn->out, OUT_BYTES_MAX);
    list_init(&conn->room);
    timer_init(&conn->retry, on_retry);
}

void load_conn_close(struct load_conn *conn)
{
    timer_stop(&conn->retry, conn->thread->loop);
    drop_stream(conn);
    buf_fini(&conn->out);
}
