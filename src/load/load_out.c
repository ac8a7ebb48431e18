#include "load/load_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/iov.h"
#include "load/load_state.h"

void load_batch_init(struct load_batch *batch)
{
    batch->count = 0;
    buf_init(&batch->copy, LOAD_OUT_BYTES_MAX);
}

void load_batch_fini(struct load_batch *batch)
{
    buf_fini(&batch->copy);
}

static ssize_t write_pieces(struct load_conn *conn, const struct iovec *pieces, int count)
{
    ssize_t n = conn->stream.can_write ? stream_writev(&conn->stream, pieces, count) : STREAM_WAIT;

    if (n > 0)
        load_count(&conn->thread->counts.bytes_out, (uint64_t)n);
    return n;
}

/* What is kept is bounded by the plan, so only memory can be missing. */
static void keep_rest(struct load_conn *conn, const struct iovec *pieces, int count, size_t taken)
{
    iov_copy(&conn->out, pieces, count, taken, SIZE_MAX);
    if (conn->out.failed)
        abort();
}

void load_out_keep(struct load_conn *conn, const struct iovec *pieces, int count)
{
    keep_rest(conn, pieces, count, 0);
}

bool load_out_send(struct load_conn *conn, const struct iovec *pieces, int count)
{
    ssize_t n = 0;

    if (conn->out.len == 0) /* else it stands behind that */
        n = write_pieces(conn, pieces, count);
    if (n == STREAM_FAIL)
        return false;
    keep_rest(conn, pieces, count, n > 0 ? (size_t)n : 0);
    return true;
}

bool load_batch_flush(struct load_batch *batch, struct load_conn *conn)
{
    int count = batch->count;

    batch->count = 0;
    if (count > 0 && !load_out_send(conn, batch->pieces, count))
        return false;
    buf_clear(&batch->copy);
    return true;
}

bool load_out_resume(struct load_conn *conn)
{
    struct iovec piece = { conn->out.at + conn->out_sent, conn->out.len - conn->out_sent };
    ssize_t      n;

    if (conn->out.len == 0)
        return true;
    n = write_pieces(conn, &piece, 1);
    if (n == STREAM_FAIL)
        return false;
    conn->out_sent += n > 0 ? (size_t)n : 0;
    if (conn->out_sent == conn->out.len)
        load_out_drop(conn);
    return true;
}

/* LOAD_ID_BYTES of digits and letters that no other request of this process has. */
static void write_id(struct load_thread *thread, char *to)
{
    char text[LOAD_ID_BYTES + 1];

    snprintf(text, sizeof(text), "%05x-%04x-%016llx", (unsigned)getpid() & 0xfffff,
             thread->index & 0xffff, (unsigned long long)thread->next_id++);
    memcpy(to, text, LOAD_ID_BYTES);
}

void load_out_write_ids(struct load_thread *thread, const struct load_request *request, char *bytes)
{
    for (unsigned i = 0; i < request->id_count; i++)
        write_id(thread, bytes + request->ids[i]);
}

static void copy_with_ids(struct load_batch *batch, struct load_conn *conn,
                          const struct load_request *request)
{
    buf_add_str(&batch->copy, request->bytes);
    if (batch->copy.failed)
        abort();
    load_out_write_ids(conn->thread, request, batch->copy.at);
}

/* A copy goes out at once: there is room for one. */
bool load_batch_add(struct load_batch *batch, struct load_conn *conn,
                    const struct load_request *request)
{
    struct str bytes = request->bytes;

    if (request->id_count) {
        copy_with_ids(batch, conn, request);
        bytes = buf_str(&batch->copy);
    }
    batch->pieces[batch->count++] = (struct iovec){ (void *)bytes.at, bytes.len };
    return batch->count < LOAD_BATCH_MAX && !request->id_count ? true
                                                               : load_batch_flush(batch, conn);
}
