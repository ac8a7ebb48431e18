/* A connection's bytes, in and out, and the blocks that hold what cannot go on yet. */
#include "http/conn.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/iov.h"

enum {
    BLOCK_BYTES_KEPT  = 64 * 1024, /* larger buffers are not kept for use again */
    FREE_BLOCKS_MAX   = 64,
    INPUT_BYTES_SLACK = 2 * CONN_BODY_READ_BYTES,
};

/* --- waking ------------------------------------------------------------------------------------- */

void conn_wake(struct conn *conn)
{
    if (!conn->running)
        loop_later(conn->server->loop, &conn->turn);
}

/* Work that asks for itself again by loop_later() goes on within the turn. */
void conn_put_off(struct conn *conn)
{
    struct http_server *server = conn->server;

    later_cancel(&conn->turn);
    list_append(&server->put_off, &conn->turn.link);
    if (!timer_is_running(&server->next_turn))
        timer_start_ns(&server->next_turn, server->loop, 0);
}

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

void spare_give_body(struct http_server *server, struct exchange *ex)
{
    spare_give(server, &ex->body);
    ex->body_taken = 0;
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

void conn_keep_rest(struct conn *conn)
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
    conn_keep_rest(conn);
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

static void note_written(struct conn *conn, size_t n)
{
    conn->progress |= n > 0;
    conn->half_closed |= conn->stream.saw_fin;
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
    note_written(conn, n);
    return n - ours;
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
    if (iov_len(pieces, count) >= CONN_DIRECT_BYTES && count <= PIECES_MAX &&
        conn->stream.can_write && !conn->stream.saw_err)
        went = write_directly(conn, pieces, count);
    iov_copy(&output->bytes, pieces, count, went, SIZE_MAX);
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
        note_written(conn, (size_t)n);
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

void conn_drop_blocks(struct conn *conn)
{
    if (conn->input)
        give_input(conn->server, conn->input);
    if (conn->output)
        give_output(conn->server, conn->output);
    conn->input  = NULL;
    conn->output = NULL;
}

void conn_free_blocks(struct http_server *server)
{
    while (server->free_inputs) {
        struct input *input = server->free_inputs;

        server->free_inputs = input->next;
        buf_fini(&input->bytes);
        free(input);
    }
    while (server->free_outputs) {
        struct output *output = server->free_outputs;

        server->free_outputs = output->next;
        buf_fini(&output->bytes);
        free(output);
    }
    while (server->spare_buf_count)
        buf_fini(&server->spare_bufs[--server->spare_buf_count]);
}
