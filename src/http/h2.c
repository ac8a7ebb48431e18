/* How it goes: a run reads, gives what nghttp2 makes of it to the streams, dispatches the heads that are
 * complete, tells each work its news, and moves the frames that came of all that to the output, which is
 * written with one call. Again, while that makes room or news; what is too much for a turn is put off.
 *
 * Everything that may call an application happens here, outside of nghttp2. */
#include "http/h2.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "http/h2_events.h"
#include "http/h2_send.h"
#include "http/h2_stream.h"

enum {
    CONN_WINDOW_BYTES  = 1024 * 1024, /* of bodies that came and were not taken, in all streams */
    FILLS_MAX          = 8,           /* reads of one connection in one turn */
    ROUNDS_MAX         = 16,          /* writes of one connection in one turn */
    TICK_MS_MAX        = 1000,
    TICK_MS_MIN        = 5,
    NOTICE_MS          = 1000,        /* for the answer to the PING behind the first GOAWAY */
    LIBRARY_FRAMES_MAX = 100 * 1000,  /* the guard is stricter than nghttp2's own bounds */
    HEAD_OUT_BYTES_MAX = 1024 * 1024, /* of an answer, in HPACK; more resets its stream */
    FIELD_OVERHEAD     = 32,          /* RFC 9113, 6.5.2 counts so much for each field */

    TOO_MANY_CONTINUATIONS = -905, /* NGHTTP2_ERR_..., which older headers do not have */
};

/* What one run may still do. */
struct turn {
    unsigned requests;
    unsigned fills;
    bool     has_read;
};

static uint64_t now_ms(const struct http_server *server)
{
    return loop_now_ns(server->loop) / 1000000;
}

/* --- the worker's share ------------------------------------------------------------------------------ */

static void on_tick(struct limit *limit);

/* A quarter of the shortest limit, so none is exceeded by more. */
static uint64_t tick_ms(const struct http_limits *limits)
{
    uint64_t each[] = { limits->head_ms, limits->body_ms, limits->write_ms }, shortest = UINT64_MAX;

    for (size_t i = 0; i < ARRAY_LEN(each); i++)
        if (each[i] && each[i] < shortest)
            shortest = each[i];
    shortest /= 4;
    if (shortest > TICK_MS_MAX)
        return TICK_MS_MAX;
    return shortest < TICK_MS_MIN ? TICK_MS_MIN : shortest;
}

/* nghttp2's limits of floods end a connection with no word, so they lie behind the guard's. Priorities by
 * dependency (RFC 7540) are off with our SETTINGS, and their memory with them. */
static nghttp2_option *new_option(void)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        abort(); /* as base/arena.h has it: there is no better way on */
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, LIBRARY_FRAMES_MAX);
    nghttp2_option_set_stream_reset_rate_limit(option, LIBRARY_FRAMES_MAX, LIBRARY_FRAMES_MAX);
#if SRV_NGHTTP2_CONTINUATIONS /* else it has no bound of them */
    nghttp2_option_set_max_continuations(option, LIBRARY_FRAMES_MAX);
#endif
    nghttp2_option_set_max_send_header_block_length(option, HEAD_OUT_BYTES_MAX);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    return option;
}

static struct h2_shared *new_shared(struct http_server *server)
{
    struct h2_shared *shared = malloc(sizeof(*shared));

    if (!shared || nghttp2_session_callbacks_new(&shared->callbacks) != 0)
        abort();
    h2_events_register(shared->callbacks);
    shared->option = new_option();
    h2_memory_init(&shared->memory);
    limit_queue_init(&shared->ticks, server->loop, tick_ms(&server->limits), on_tick);
    return shared;
}

void h2_free_shared(struct h2_shared *shared)
{
    if (!shared)
        return;
    limit_queue_fini(&shared->ticks);
    nghttp2_session_callbacks_del(shared->callbacks);
    nghttp2_option_del(shared->option);
    h2_memory_fini(&shared->memory);
    free(shared);
}

/* --- the beginning ------------------------------------------------------------------------------------ */

static int submit_settings(struct h2 *h2, const struct http_limits *limits)
{
    nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
          limits->head_bytes + FIELD_OVERHEAD * limits->head_fields },
        { NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
        { NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
    };
    int result =
        nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));

    if (result != 0)
        return result;
    return nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                                 CONN_WINDOW_BYTES);
}

static struct h2 *new_h2(struct conn *conn)
{
    struct h2_shared *shared = conn->server->h2;
    struct h2        *h2     = calloc(1, sizeof(*h2));

    if (!h2)
        return NULL;
    h2->conn = conn;
    list_init(&h2->streams);
    list_init(&h2->heads);
    list_init(&h2->news);
    list_init(&h2->answered);
    limit_init(&h2->tick);
    h2_guard_init(&h2->guard, now_ms(conn->server));
    if (nghttp2_session_server_new3(&h2->session, shared->callbacks, h2, shared->option,
                                    &shared->memory.calls) != 0)
        goto free_h2;
    if (submit_settings(h2, &conn->server->limits) != 0)
        goto delete_session;
    return h2;

delete_session:
    nghttp2_session_del(h2->session);
free_h2:
    free(h2);
    return NULL;
}

void h2_begin(struct conn *conn)
{
    struct h2 *h2;

    if (!conn->server->h2)
        conn->server->h2 = new_shared(conn->server);
    h2 = new_h2(conn);
    if (!h2) {
        conn->failed = true;
        return;
    }
    conn->speech = CONN_H2;
    conn->h2     = h2;
}

/* --- reading --------------------------------------------------------------------------------------------- */

static void report(struct h2 *h2, const char *reason)
{
    const struct http_server_options *options = &h2->conn->server->options;
    struct http_refusal               refusal = { .kind   = REFUSED_FRAMES,
                                                  .reason = reason,
                                                  .peer   = &h2->conn->peer };

    if (options->on_refused)
        options->on_refused(&refusal, options->arg);
}

/* The client is told, and nothing is read any more. */
static void break_off(struct h2 *h2, uint32_t code, const char *reason)
{
    if (h2->broken)
        return;
    h2->broken = true;
    report(h2, reason);
    nghttp2_session_terminate_session(h2->session, code);
}

/* What the events have found, outside of nghttp2's calls. */
static void note_fault(struct h2 *h2)
{
    if (h2->fault)
        break_off(h2, h2->fault_code, h2->fault);
}

/* A library that is newer than the headers may have a bound of CONTINUATION frames that we could not set. */
static uint32_t code_of(ssize_t fault)
{
    bool is_flood = fault == TOO_MANY_CONTINUATIONS || fault == NGHTTP2_ERR_FLOODED;

    return is_flood ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR;
}

/* All of it is consumed, whatever it is. */
static void feed(struct h2 *h2)
{
    struct conn *conn = h2->conn;
    struct str   rest = conn_rest(conn);
    ssize_t      n    = nghttp2_session_mem_recv(h2->session, (const uint8_t *)rest.at, rest.len);

    conn_consume(conn, rest.len);
    note_fault(h2);
    if (n < 0 && !h2->broken)
        break_off(h2, code_of(n), nghttp2_strerror((int)n));
    conn->served |= h2->ready; /* who has said hello may take its time with the first request */
}

static bool is_full(const struct conn *conn)
{
    return conn_pending(conn) >= CONN_HIGH_BYTES;
}

static void note_eof(struct h2 *h2)
{
    if (!h2->conn->eof)
        return;
    list_each_safe(node, &h2->streams)
        h2_stream_hears_no_more(container_of(node, struct h2_stream, link));
}

/* Reads once. Who does not read his answers is not heard. True: there may be more. */
static bool read_once(struct h2 *h2, struct turn *turn)
{
    struct conn *conn = h2->conn;

    if (conn->state != CONN_OPEN || h2->broken || is_full(conn))
        return false;
    if (!conn_rest(conn).len) {
        if (turn->fills == FILLS_MAX) {
            conn->again = true;
            return false;
        }
        turn->fills++;
        if (conn_fill(conn, CONN_BODY_READ_BYTES) != FILL_BYTES) {
            note_eof(h2);
            return false;
        }
    }
    turn->has_read = true;
    feed(h2);
    return true;
}

/* --- streams ---------------------------------------------------------------------------------------------- */

/* Those that were cancelled count until nobody works on them any more, so a client that resets what it
 * opens starts no more work than one that waits. The rest stay in line. */
static bool may_dispatch(const struct h2 *h2)
{
    return !list_is_empty(&h2->heads) && h2->started < h2->conn->server->limits.streams &&
           h2->kept < H2_KEPT_BYTES_MAX && !h2->broken;
}

static void dispatch_heads(struct h2 *h2, struct turn *turn)
{
    while (may_dispatch(h2)) {
        struct h2_stream *stream = container_of(h2->heads.next, struct h2_stream, turn);

        if (turn->requests == h2->conn->server->limits.pipeline) {
            h2->conn->again = true;
            return;
        }
        turn->requests++;
        list_remove(&stream->turn);
        h2_stream_dispatch(stream);
    }
}

/* What is told may make news for the next round. */
static void tell_news(struct h2 *h2)
{
    struct list  round;
    struct list *node;

    list_init(&round);
    list_splice(&round, &h2->news);
    while ((node = list_take_first(&round)))
        h2_stream_tell(container_of(node, struct h2_stream, turn));
}

static void lose_streams(struct h2 *h2, struct list *streams, enum gone_why why)
{
    while (!list_is_empty(streams))
        h2_stream_lost(container_of(streams->next, struct h2_stream, link), why);
}

/* --- the end, step by step --------------------------------------------------------------------------------- */

/* RFC 9113, 6.8: a first GOAWAY says that the server will go; what the client sent before it heard so has
 * come when it answers the PING. */
static void give_notice(struct h2 *h2)
{
    h2->noticed   = true;
    h2->notice_ms = now_ms(h2->conn->server);
    nghttp2_submit_shutdown_notice(h2->session); /* the PING follows: h2_events.c */
}

static void leave(struct h2 *h2)
{
    h2->left = true;
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h2->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
}

static void say_goodbye(struct h2 *h2)
{
    struct conn *conn = h2->conn;

    if (h2->left || h2->broken)
        return;
    if (conn->state == CONN_CLOSING || h2->notice_seen)
        leave(h2);
    else if (conn->server->draining && !h2->noticed)
        give_notice(h2);
}

/* Who has ended its direction opens no window any more. */
static void lose_stuck(struct h2 *h2)
{
    list_each_safe(node, &h2->streams)
    {
        struct h2_stream *stream = container_of(node, struct h2_stream, link);

        if (h2_stream_waits_for_window(stream))
            h2_stream_lost(stream, GONE_CLIENT);
    }
}

/* Nothing comes and nothing goes any more, or nobody is there. */
static void look_for_end(struct h2 *h2)
{
    struct conn *conn = h2->conn;
    bool         is_over =
        !nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session);

    if (conn->eof)
        lose_stuck(h2);
    if (is_over)
        lose_streams(h2, &h2->streams, GONE_CLIENT);
    if (is_over || (list_is_empty(&h2->streams) && (conn->eof || h2->left)))
        conn->state = CONN_CLOSING;
}

/* --- running ------------------------------------------------------------------------------------------------- */

static void flush(struct h2 *h2)
{
    struct conn *conn = h2->conn;

    if (conn->output)
        conn_flush(conn);
    h2_stream_tell_answered(h2);
    conn_release_output(conn);
}

/* True: there is reason to go on. */
static bool run_round(struct h2 *h2, struct turn *turn)
{
    bool was_full = is_full(h2->conn), has_read;

    say_goodbye(h2);
    has_read = read_once(h2, turn);
    dispatch_heads(h2, turn);
    tell_news(h2);
    h2_send_pump(h2);
    note_fault(h2);
    if (has_read && !is_full(h2->conn))
        return true;
    flush(h2);
    if (!list_is_empty(&h2->news) || (may_dispatch(h2) && !h2->conn->again))
        return true;
    /* What came while nothing was heard may lie there, and tells of itself no more. */
    return !is_full(h2->conn) && (was_full || has_read || nghttp2_session_want_write(h2->session));
}

static void run(struct conn *conn)
{
    struct h2  *h2     = conn->h2;
    struct turn turn   = { 0 };
    unsigned    rounds = 0;

    while (run_round(h2, &turn) && !conn->failed)
        if (++rounds == ROUNDS_MAX) {
            conn->again = true;
            break;
        }
    look_for_end(h2);
    if (list_is_empty(&h2->streams))
        return;
    /* What was read may have hidden a reset (conn_life.c: on_check_due()). */
    conn->progress |= turn.has_read && !conn_pending(conn);
    if (!list_is_linked(&h2->tick.link))
        limit_start(&h2->tick, &conn->server->h2->ticks);
}

/* --- time ---------------------------------------------------------------------------------------------------- */

/* A block that began and does not end, while other streams go on. */
static bool is_head_late(const struct h2 *h2, uint64_t now)
{
    uint64_t limit_ms = h2->conn->server->limits.head_ms;

    return h2->head_of && limit_ms && now - h2->head_ms >= limit_ms;
}

static void on_tick(struct limit *limit)
{
    struct h2 *h2  = container_of(limit, struct h2, tick);
    uint64_t   now = now_ms(h2->conn->server);

    list_each_safe(node, &h2->streams)
        h2_stream_tick(container_of(node, struct h2_stream, link), now);
    if (is_head_late(h2, now))
        break_off(h2, NGHTTP2_PROTOCOL_ERROR, "a header section took too long");
    if (h2->noticed && now - h2->notice_ms >= NOTICE_MS)
        h2->notice_seen = true;
    conn_wake(h2->conn);
}

/* --- for conn_life.c --------------------------------------------------------------------------------------------- */

static bool waits_for_notice(const struct h2 *h2)
{
    return h2->noticed && !h2->left && !h2->broken;
}

static bool is_busy(const struct conn *conn)
{
    return conn->h2 && (!list_is_empty(&conn->h2->streams) || waits_for_notice(conn->h2));
}

static enum conn_wait waits_for(const struct conn *conn)
{
    if (list_is_empty(&conn->h2->streams))
        return CONN_WAIT_LINGER;
    if (conn->stream.saw_fin && !conn->half_closed)
        return CONN_WAIT_HALF_CLOSE;
    return CONN_WAIT_CHANNEL; /* it goes on reading, unlike HTTP/1 while it works */
}

/* It has not even said hello. */
static void head_is_late(struct conn *conn)
{
    conn->state = CONN_CLOSING;
}

static void body_is_late(struct conn *conn)
{
}

static void lost(struct conn *conn, enum gone_why why)
{
    struct h2 *h2 = conn->h2;

    lose_streams(h2, &h2->streams, why);
    lose_streams(h2, &h2->answered, why);
    limit_stop(&h2->tick);
    nghttp2_session_del(h2->session);
    conn->h2 = NULL;
    h2->conn = NULL;
    if (!h2->started)
        free(h2);
}

const struct conn_protocol h2_protocol = {
    .run          = run,
    .is_busy      = is_busy,
    .waits_for    = waits_for,
    .head_is_late = head_is_late,
    .body_is_late = body_is_late,
    .lost         = lost,
};
