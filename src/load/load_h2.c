#include "load/load_h2.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "client/h2_client.h"
#include "http/message.h"
#include "load/load_account.h"
#include "load/load_out.h"
#include "load/load_state.h"

/* The load is not what slows a server down. */
enum { WINDOW = 1 << 30 };

/* A request under way. Those that have ended wait for the next, on any connection of the thread. */
struct load_stream {
    struct h2_client_stream stream;
    struct load_conn       *conn;
    struct list             link; /* in conn->h2.under_way, oldest first, or in thread->streams */
    struct load_slot        slot;
    struct load_body        body;
    char                   *copy; /* of a request with ids of its own */
};

static struct load_stream *stream_at(struct list *node)
{
    return container_of(node, struct load_stream, link);
}

/* --- streams ---------------------------------------------------------------------------------------- */

static struct load_stream *take_stream(struct load_conn *conn)
{
    struct list        *first  = list_take_first(&conn->thread->streams);
    struct load_stream *stream = first ? stream_at(first) : malloc(sizeof(*stream));

    if (!stream)
        abort();
    *stream = (struct load_stream){ .conn = conn };
    list_append(&conn->h2.under_way, &stream->link);
    return stream;
}

static void give_stream(struct load_stream *stream)
{
    free(stream->copy);
    stream->copy = NULL;
    list_remove(&stream->link);
    list_prepend(&stream->conn->thread->streams, &stream->link);
}

void load_h2_open(struct load_thread *thread)
{
    list_init(&thread->streams);
    h2_memory_init(&thread->h2_memory);
}

void load_h2_close(struct load_thread *thread)
{
    struct list *first;

    while ((first = list_take_first(&thread->streams)))
        free(stream_at(first));
    h2_memory_fini(&thread->h2_memory);
}

/* --- what becomes of them ----------------------------------------------------------------------------- */

static struct load_stream *stream_of(struct h2_client_stream *stream)
{
    return container_of(stream, struct load_stream, stream);
}

static void on_head(struct h2_client_stream *stream)
{
}

static void on_data(struct h2_client_stream *stream, struct str piece)
{
    struct load_stream *own = stream_of(stream);

    load_body_compare(&own->body, &load_plan_of(own->conn)->requests[own->slot.request], piece);
}

static void on_end(struct h2_client_stream *stream)
{
    struct load_stream *own  = stream_of(stream);
    struct load_conn   *conn = own->conn;

    load_account_answer(conn, &own->slot, stream->status, &own->body, conn->thread->now_ns);
    give_stream(own);
}

static void on_fault(struct h2_client_stream *stream, enum h2_client_fault fault)
{
    static const enum load_fault FAULTS[] = {
        [H2_CLIENT_UNSEEN] = LOAD_STREAM_REFUSED, [H2_CLIENT_H1] = LOAD_STREAM_REFUSED,
        [H2_CLIENT_RESET] = LOAD_STREAM_RESET,    [H2_CLIENT_BROKEN] = LOAD_MALFORMED,
        [H2_CLIENT_LOST] = LOAD_CLOSED,
    };
    struct load_stream *own = stream_of(stream);

    load_account_fault(own->conn, FAULTS[fault]);
    give_stream(own);
}

static const struct h2_client_events EVENTS = {
    .on_head  = on_head,
    .on_data  = on_data,
    .on_end   = on_end,
    .on_fault = on_fault,
};

/* --- bytes ------------------------------------------------------------------------------------------- */

/* What the socket does not take now is asked for when it can take more. */
static enum load_fault flush(struct load_conn *conn)
{
    char *bytes = conn->thread->output;

    while (conn->out.len == 0) {
        struct iovec piece = { bytes,
                               h2_client_produce(conn->h2.client, bytes, LOAD_OUTPUT_BYTES) };

        if (!piece.iov_len)
            break;
        if (!load_out_send(conn, &piece, 1))
            return LOAD_RESET;
    }
    return LOAD_WELL;
}

static enum load_fault resume(struct load_conn *conn)
{
    return load_out_resume(conn) ? flush(conn) : LOAD_RESET;
}

/* The server wants no more of this connection, or it has had its share. */
static bool is_of_no_use(const struct load_conn *conn)
{
    return h2_client_is_over(conn->h2.client) || load_account_is_used_up(conn) ||
           (conn->under_way == 0 && h2_client_is_leaving(conn->h2.client));
}

static enum load_fault take(struct load_conn *conn, const char *bytes, size_t len, uint64_t now_ns)
{
    enum load_fault fault;

    conn->thread->now_ns = now_ns;
    if (!h2_client_feed(conn->h2.client, bytes, len))
        return LOAD_MALFORMED;
    fault = flush(conn);
    if (fault != LOAD_WELL || !is_of_no_use(conn))
        return fault;
    return h2_client_is_broken(conn->h2.client) ? LOAD_MALFORMED : LOAD_CLOSED;
}

static void end(struct load_conn *conn, uint64_t now_ns)
{
}

/* --- sending ----------------------------------------------------------------------------------------- */

static unsigned room(const struct load_conn *conn)
{
    return h2_client_room(conn->h2.client);
}

/* The fields of REQUEST, with ids of its own in a copy of its bytes. */
static const struct field *copy_with_ids(struct load_stream        *stream,
                                         const struct load_request *request)
{
    struct field *fields = stream->conn->thread->fields;

    stream->copy = malloc(request->bytes.len);
    if (!stream->copy)
        abort();
    memcpy(stream->copy, request->bytes.at, request->bytes.len);
    load_out_write_ids(stream->conn->thread, request, stream->copy);
    for (unsigned i = 0; i < request->field_count; i++) {
        fields[i]          = request->fields[i];
        fields[i].name.at  = stream->copy + (fields[i].name.at - request->bytes.at);
        fields[i].value.at = stream->copy + (fields[i].value.at - request->bytes.at);
    }
    return fields;
}

static void issue(struct load_conn *conn, uint64_t planned_ns, uint64_t now_ns)
{
    struct load_stream        *stream = take_stream(conn);
    const struct load_request *request =
        load_account_issue(conn, &stream->slot, planned_ns, now_ns);
    struct h2_client_request out = {
        .fields      = request->fields,
        .field_count = request->field_count,
        .fields_stay = true,
        .body        = str_from(request->bytes, request->body_at),
    };

    if (request->id_count) {
        out.fields = copy_with_ids(stream, request);
        if (out.body.len)
            out.body = str_make(stream->copy + request->body_at, out.body.len);
    }
    if (!h2_client_request(conn->h2.client, &stream->stream,
                           &out)) /* there is room, so it is memory */
        abort();
}

static enum load_fault fill(struct load_conn *conn, uint64_t now_ns, unsigned most)
{
    uint64_t planned_ns;

    conn->thread->now_ns = now_ns;
    while (most-- > 0 && load_account_may_issue(conn) &&
           load_account_is_due(conn, now_ns, &planned_ns))
        issue(conn, planned_ns, now_ns);
    return flush(conn);
}

/* Streams wait for none but themselves. */
static enum load_fault check(struct load_conn *conn, uint64_t late_ns)
{
    bool is_late = false;

    while (!list_is_empty(&conn->h2.under_way)) {
        struct load_stream *oldest = stream_at(conn->h2.under_way.next);

        if (oldest->slot.sent_ns >= late_ns)
            break;
        is_late = true;
        h2_client_cancel(&oldest->stream);
        give_stream(oldest);
        load_account_fault(conn, LOAD_TIMEOUT);
    }
    return is_late ? flush(conn) : LOAD_WELL;
}

/* --- life -------------------------------------------------------------------------------------------- */

static enum load_fault begin(struct load_conn *conn)
{
    struct h2_client_options options = { .streams = load_plan_of(conn)->pipelining,
                                         .window  = WINDOW,
                                         .memory  = &conn->thread->h2_memory };

    list_init(&conn->h2.under_way);
    if (h2_client_open(&conn->h2.client, &options, &EVENTS, NULL) != 0)
        abort();
    return flush(conn);
}

static bool is_ready(const struct load_conn *conn)
{
    return h2_client_is_ready(conn->h2.client);
}

static const char *why(const struct load_conn *conn)
{
    return h2_client_why(conn->h2.client);
}

static void leave(struct load_conn *conn)
{
    if (!conn->h2.client)
        return;
    h2_client_close(conn->h2.client);
    conn->h2.client = NULL;
    while (!list_is_empty(&conn->h2.under_way))
        give_stream(stream_at(conn->h2.under_way.next));
}

const struct load_protocol LOAD_H2 = {
    .begin    = begin,
    .is_ready = is_ready,
    .why      = why,
    .leave    = leave,
    .room     = room,
    .fill     = fill,
    .take     = take,
    .end      = end,
    .resume   = resume,
    .check    = check,
};
