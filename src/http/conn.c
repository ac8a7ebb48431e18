/* The life of a connection: opened, run again and again, ended by a lingering close or a cut.
 *
 * The rule that keeps it safe: only conn_run(), conn_free() and the limit's callback free a
 * connection, and they are called from the loop alone. */
#include "http/conn.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "http/h1.h"

enum {
    LINGER_BYTES_MAX  = 4 * 1024 * 1024, /* dropped after our end of the talk */
    LINGER_READS_MAX  = 16,              /* in one turn */
    BLOCK_BYTES_KEPT  = 64 * 1024,       /* larger buffers are not kept for use again */
    FREE_CONNS_MAX    = 256,
    FREE_BLOCKS_MAX   = 64,
    INPUT_BYTES_SLACK = 2 * CONN_BODY_READ_BYTES,
};

_Static_assert(sizeof(struct conn) <= 340, "a connection's cell (CORE, decision 4)");

/* --- blocks --------------------------------------------------------------------------------------- */

void spare_take(struct http_server *server, struct buf *into)
{
    if (server->spare_buf_count && !into->at) {
        struct buf *spare = &server->spare_bufs[--server->spare_buf_count];

        into->at   = spare->at;
        into->room = spare->room;
    }
}

void spare_give(struct http_server *server, struct buf *from)
{
    if (from->at && from->room <= BLOCK_BYTES_KEPT && server->spare_buf_count < SPARE_BUFS_MAX) {
        server->spare_bufs[server->spare_buf_count++] = *from;
        from->at                                      = NULL;
        from->room = from->len = 0;
    }
    buf_fini(from);
}

static void *alloc_or_abort(size_t bytes)
{
    void *block = malloc(bytes);

    if (!block)
        abort(); /* as base/arena.h has it: there is no better way on */
    return block;
}

static struct input *take_input(struct http_server *server)
{
    struct input *input = server->free_inputs;

    if (input) {
        server->free_inputs = input->next;
        server->free_input_count--;
    } else {
        input = alloc_or_abort(sizeof(*input));
        buf_init(&input->bytes, server->limits.head_bytes + INPUT_BYTES_SLACK);
    }
    input->used = 0;
    return input;
}

static void give_input(struct http_server *server, struct input *input)
{
    buf_clear(&input->bytes);
    buf_shrink(&input->bytes, BLOCK_BYTES_KEPT);
    if (server->free_input_count == FREE_BLOCKS_MAX) {
        buf_fini(&input->bytes);
        free(input);
        return;
    }
    input->next         = server->free_inputs;
    server->free_inputs = input;
    server->free_input_count++;
}

static struct output *take_output(struct http_server *server)
{
    struct output *output = server->free_outputs;

    if (output) {
        server->free_outputs = output->next;
        server->free_output_count--;
    } else {
        output = alloc_or_abort(sizeof(*output));
        buf_init(&output->bytes, SIZE_MAX / 2);
    }
    output->sent          = 0;
    output->written       = 0;
    output->answered      = NULL;
    output->answered_last = &output->answered;
    output->file_fd       = -1;
    output->file_left     = 0;
    return output;
}

static void give_output(struct http_server *server, struct output *output)
{
    if (output->file_fd >= 0)
        close(output->file_fd);
    buf_clear(&output->bytes);
    buf_shrink(&output->bytes, BLOCK_BYTES_KEPT);
    if (server->free_output_count == FREE_BLOCKS_MAX) {
        buf_fini(&output->bytes);
        free(output);
        return;
    }
    output->next         = server->free_outputs;
    server->free_outputs = output;
    server->free_output_count++;
}

/* --- input ------------------------------------------------------------------------------------------ */

struct str conn_rest(const struct conn *conn)
{
    if (!conn->input)
        return conn->server->rest;
    return str_from(buf_str(&conn->input->bytes), conn->input->used);
}

void conn_consume(struct conn *conn, size_t bytes)
{
    struct input *input = conn->input;

    if (!input) {
        conn->server->rest = str_from(conn->server->rest, bytes);
        return;
    }
    input->used += bytes;
    if (input->used < input->bytes.len)
        return;
    conn->server->gate = input->gate;
    conn->input        = NULL;
    give_input(conn->server, input);
}

struct h1_head_gate *conn_gate(struct conn *conn)
{
    return conn->input ? &conn->input->gate : &conn->server->gate;
}

/* What is in the shared buffer moves to a block of our own before the buffer is used again. */
static void keep_rest(struct conn *conn)
{
    struct http_server *server = conn->server;

    if (conn->input) {
        buf_consume(&conn->input->bytes, conn->input->used);
        conn->input->used = 0;
    } else if (server->rest.len) {
        conn->input       = take_input(server);
        conn->input->gate = server->gate;
        buf_add_str(&conn->input->bytes, server->rest);
    }
    server->rest = STR_NONE;
}

/* Read behind what is kept. Bytes that find no memory end the connection: they are not to be had
 * again. */
static enum conn_fill take_bytes(struct conn *conn, size_t len)
{
    struct http_server *server = conn->server;

    if (!conn->input) {
        server->rest = str_make(server->read_buffer, len);
        return FILL_BYTES;
    }
    buf_add(&conn->input->bytes, server->read_buffer, len);
    if (!conn->input->bytes.failed)
        return FILL_BYTES;
    conn->failed = true;
    return FILL_END;
}

enum conn_fill conn_fill(struct conn *conn, size_t len)
{
    ssize_t n;

    if (conn->eof || conn->failed || conn->stream.saw_err)
        return FILL_END;
    if (!conn->stream.can_read)
        return FILL_NOTHING;
    keep_rest(conn);
    n = stream_read(&conn->stream, conn->server->read_buffer, len);
    if (n > 0)
        return take_bytes(conn, (size_t)n);
    conn->eof = n == STREAM_FIN;
    return n == STREAM_WAIT ? FILL_NOTHING : FILL_END;
}

/* --- output ----------------------------------------------------------------------------------------- */

struct output *conn_output(struct conn *conn)
{
    if (!conn->output)
        conn->output = take_output(conn->server);
    return conn->output;
}

size_t conn_pending(const struct conn *conn)
{
    return conn->output ? conn->output->bytes.len - conn->output->sent : 0;
}

bool conn_has_file(const struct conn *conn)
{
    return conn->output && conn->output->file_fd >= 0;
}

/* N bytes went out: first those that were pending, then such of the pieces. Returns the latter. */
static size_t count_written(struct conn *conn, size_t n)
{
    struct output *output  = conn->output;
    size_t         pending = conn_pending(conn);
    size_t         ours    = n < pending ? n : pending;

    output->written += n;
    output->sent += ours;
    if (output->sent == output->bytes.len) {
        output->sent = 0;
        buf_clear(&output->bytes);
    }
    conn->progress |= n > 0;
    conn->half_closed |= conn->stream.saw_fin;
    return n - ours;
}

static void keep_pieces(struct conn *conn, const struct iovec *pieces, int count, size_t skip)
{
    for (int i = 0; i < count; i++) {
        size_t skipped = skip < pieces[i].iov_len ? skip : pieces[i].iov_len;

        buf_add(&conn->output->bytes, (const char *)pieces[i].iov_base + skipped,
                pieces[i].iov_len - skipped);
        skip -= skipped;
    }
}

static size_t total_len(const struct iovec *pieces, int count)
{
    size_t len = 0;

    for (int i = 0; i < count; i++)
        len += pieces[i].iov_len;
    return len;
}

enum { PIECES_MAX = 16 };

/* Pending bytes and the pieces in one call; what went of the pieces. */
static size_t write_directly(struct conn *conn, const struct iovec *pieces, int count)
{
    struct output *output = conn->output;
    struct iovec   all[PIECES_MAX + 1];
    int            used = 0;
    ssize_t        n;

    if (conn_pending(conn))
        all[used++] = (struct iovec){ output->bytes.at + output->sent, conn_pending(conn) };
    for (int i = 0; i < count; i++)
        all[used++] = pieces[i];
    n = stream_writev(&conn->stream, all, used);
    return n > 0 ? count_written(conn, (size_t)n) : 0;
}

void conn_write(struct conn *conn, const struct iovec *pieces, int count)
{
    struct output *output = conn_output(conn);
    size_t         went   = 0;

    assert(output->file_fd < 0);
    if (total_len(pieces, count) >= CONN_DIRECT_BYTES && count <= PIECES_MAX &&
        conn->stream.can_write && !conn->stream.saw_err)
        went = write_directly(conn, pieces, count);
    keep_pieces(conn, pieces, count, went);
}

static void flush_bytes(struct conn *conn)
{
    while (conn_pending(conn) && conn->stream.can_write && !conn->stream.saw_err) {
        struct iovec piece = { conn->output->bytes.at + conn->output->sent, conn_pending(conn) };
        ssize_t      n     = stream_writev(&conn->stream, &piece, 1);

        if (n <= 0)
            return;
        count_written(conn, (size_t)n);
    }
}

static void drop_file(struct output *output)
{
    close(output->file_fd);
    output->file_fd   = -1;
    output->file_left = 0;
}

/* Where sendfile() does not work: the bytes go by way of the output, one piece at a time. 0: the
 * file cannot be read any further. */
static ssize_t copy_file(struct output *output, size_t len)
{
    char   *to = buf_reserve(&output->bytes, len);
    ssize_t n  = to ? pread(output->file_fd, to, len, output->file_at) : 0;

    if (n <= 0)
        return 0;
    output->bytes.len += (size_t)n;
    output->file_at += n;
    return n;
}

/* A short file joins the head in one packet. */
void conn_write_file(struct conn *conn, int fd, off_t offset, uint64_t len)
{
    struct output *output = conn_output(conn);

    assert(output->file_fd < 0 && len > 0);
    output->file_fd   = fd;
    output->file_at   = offset;
    output->file_left = len;
    if (len > CONN_DIRECT_BYTES)
        return;
    while (output->file_left) {
        ssize_t n = copy_file(output, (size_t)output->file_left);

        conn->failed |= n == 0;
        if (n == 0)
            return;
        output->file_left -= (uint64_t)n;
    }
    drop_file(output);
}

/* One piece of the file: bytes that went or are queued; 0 or less: not now. A file that has become
 * shorter than its head said is the end of the connection. */
static ssize_t send_piece(struct conn *conn)
{
    struct output *output = conn->output;
    size_t  len = output->file_left < CONN_TURN_BYTES ? (size_t)output->file_left : CONN_TURN_BYTES;
    ssize_t n   = stream_sendfile(&conn->stream, output->file_fd, &output->file_at, len);

    if (n == STREAM_UNSUPPORTED)
        n = copy_file(output, len < CONN_HIGH_BYTES ? len : CONN_HIGH_BYTES);
    else if (n > 0)
        conn->progress = true;
    if (n == 0)
        conn->failed = true;
    return n;
}

/* A fast reader could be served for ever: after one turn's share the others have theirs. */
static void flush_file(struct conn *conn)
{
    struct output *output = conn->output;
    uint64_t       before = output->file_left;

    while (output->file_left && conn->stream.can_write && !conn->stream.saw_err) {
        ssize_t n;

        if (before - output->file_left >= CONN_TURN_BYTES) {
            conn->again = true;
            return;
        }
        n = send_piece(conn);
        if (n <= 0)
            return;
        output->file_left -= (uint64_t)n;
        flush_bytes(conn);
        if (conn_pending(conn))
            return;
    }
    if (!output->file_left)
        drop_file(output);
}

bool conn_flush(struct conn *conn)
{
    flush_bytes(conn);
    if (!conn_pending(conn) && conn_has_file(conn))
        flush_file(conn);
    return !conn_pending(conn) && !conn_has_file(conn);
}

void conn_release_output(struct conn *conn)
{
    struct output *output = conn->output;

    if (!output || conn_pending(conn) || output->file_fd >= 0 || output->answered)
        return;
    conn->output = NULL;
    give_output(conn->server, output);
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

void conn_wake(struct conn *conn)
{
    if (!conn->running)
        loop_later(conn->server->loop, &conn->turn);
}

static struct conn *take_cell(struct http_server *server)
{
    struct list *node = list_take_first(&server->free_conns);

    if (!node)
        return alloc_or_abort(sizeof(struct conn));
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

static void conn_arm(struct conn *conn);

struct conn *conn_new(struct http_server *server, int fd, const struct addr *peer)
{
    struct conn *conn = take_cell(server);

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
    conn_arm(conn);
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
    h1_lost(conn, why);
    if (conn->must_reset)
        ask_for_reset(conn);
    later_cancel(&conn->turn);
    limit_stop(&conn->limit);
    stream_fini(&conn->stream);
    if (conn->input)
        give_input(server, conn->input);
    if (conn->output)
        give_output(server, conn->output);
    list_remove(&conn->link);
    give_cell(server, conn);
    if (--server->conn_count == 0 && server->draining)
        loop_later(server->loop, &server->drained);
}

/* --- the end ------------------------------------------------------------------------------------------ */

/* Bytes that the client sent and we do not read make close() a reset, which may overtake the
 * answer. Only a client that asked for the close and was read to the end sends no more. */
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
        conn_free(conn, GONE_CLIENT);
        return true;
    }
    stream_shut(&conn->stream);
    conn->state = CONN_LINGERING;
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

/* --- limits --------------------------------------------------------------------------------------------- */

/* The queue that a wait's limit begins in. */
static struct limit_queue *queue_of(struct http_server *server, enum conn_wait wait)
{
    switch (wait) {
    case CONN_WAIT_WORK:
    case CONN_WAIT_HEAD:
    case CONN_WAIT_BODY: return &server->checks; /* then theirs: see on_check_due() */
    case CONN_WAIT_IDLE: return &server->idles;
    case CONN_WAIT_ROOM: return &server->rooms;
    case CONN_WAIT_HALF_CLOSE: return &server->half_closes;
    case CONN_WAIT_LINGER: break;
    }
    return &server->lingers;
}

static enum conn_wait wait_of(const struct conn *conn)
{
    if (conn->state == CONN_LINGERING)
        return CONN_WAIT_LINGER;
    if (conn_pending(conn) || conn_has_file(conn))
        return CONN_WAIT_ROOM;
    if (conn->exchange)
        return h1_waits_for(conn);
    if (conn->server->draining && !conn->input)
        return CONN_WAIT_LINGER; /* a new one's first request may be on its way */
    return conn->input || !conn->served ? CONN_WAIT_HEAD : CONN_WAIT_IDLE;
}

/* One limit runs, the one that fits; it starts anew only with another wait or after progress. */
static void conn_arm(struct conn *conn)
{
    enum conn_wait wait = wait_of(conn);

    conn->stream.paused = wait == CONN_WAIT_WORK || wait == CONN_WAIT_HALF_CLOSE;
    if (wait == conn->wait && !conn->progress &&
        (conn->checked || list_is_linked(&conn->limit.link)))
        return;
    conn->wait     = wait;
    conn->progress = conn->checked = false;
    limit_start(&conn->limit, queue_of(conn->server, wait));
}

/* --- running ---------------------------------------------------------------------------------------------- */

static bool has_failed(const struct conn *conn)
{
    return conn->stream.saw_err || conn->failed || (conn->output && conn->output->bytes.failed);
}

/* What follows from the state that the protocol has left. */
static void settle(struct conn *conn)
{
    bool all_done = !conn->exchange && !conn->output;

    if (has_failed(conn)) {
        conn_free(conn, GONE_CLIENT);
        return;
    }
    keep_rest(conn);
    if (conn->state == CONN_OPEN && conn->server->draining && all_done && !conn->input &&
        conn->served)
        conn->state = CONN_CLOSING;
    if (conn->state == CONN_CLOSING && all_done && end_conn(conn))
        return;
    if (conn->state == CONN_LINGERING && linger(conn))
        return;
    conn_arm(conn);
    if (conn->again)
        loop_later(conn->server->loop, &conn->turn);
}

void conn_run(struct conn *conn)
{
    struct http_server *server = conn->server;

    assert(!server->rest.len);
    h1_gate_init(&server->gate);
    conn->running = true;
    conn->again   = false;
    if (conn->state != CONN_LINGERING)
        h1_run(conn);
    conn->running = false;
    settle(conn);
    server->rest = STR_NONE;
}

/* --- limits that end ----------------------------------------------------------------------------------------- */

static void on_wait_ended(struct conn *conn)
{
    conn->running = true;
    switch ((enum conn_wait)conn->wait) {
    case CONN_WAIT_HEAD: h1_head_is_late(conn); break;
    case CONN_WAIT_BODY: h1_body_is_late(conn); break;
    case CONN_WAIT_IDLE: conn->state = CONN_CLOSING; break;
    case CONN_WAIT_LINGER: conn->state = CONN_CLOSING; break;
    case CONN_WAIT_WORK:
    case CONN_WAIT_ROOM:
    case CONN_WAIT_HALF_CLOSE: break;
    }
    conn_run(conn);
}

/* A reset that arrives together with bytes shows as bytes: reading takes them, empties the socket
 * and consumes the edge, and nothing tells of the reset while nothing is written. So the kernel is
 * asked once, a moment after the connection began to wait, and not for each request. */
static bool has_reset(const struct conn *conn)
{
    int       number = 0;
    socklen_t len    = sizeof(number);

    return getsockopt(conn->stream.fd, SOL_SOCKET, SO_ERROR, &number, &len) == 0 && number != 0;
}

static void on_check_due(struct conn *conn)
{
    conn->checked = true;
    if (has_reset(conn))
        conn_free(conn, GONE_CLIENT);
    else if (conn->wait == CONN_WAIT_HEAD)
        limit_start(&conn->limit, &conn->server->heads);
    else if (conn->wait == CONN_WAIT_BODY)
        limit_start(&conn->limit, &conn->server->bodies);
}

static bool is_to_be_checked(const struct conn *conn)
{
    return !conn->checked && (conn->wait == CONN_WAIT_WORK || conn->wait == CONN_WAIT_HEAD ||
                              conn->wait == CONN_WAIT_BODY);
}

void conn_on_limit(struct limit *limit)
{
    struct conn *conn = container_of(limit, struct conn, limit);

    if (is_to_be_checked(conn))
        on_check_due(conn);
    else if (conn->state == CONN_LINGERING || conn->wait == CONN_WAIT_HALF_CLOSE)
        conn_free(conn, GONE_CLIENT);
    else if (conn->wait == CONN_WAIT_ROOM)
        conn_free(conn, GONE_TIMEOUT);
    else
        on_wait_ended(conn);
}
