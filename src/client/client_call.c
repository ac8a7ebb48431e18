#include "client/client_call.h"

#include "base/coding.h"
#include "client/client_read.h"
#include "client/client_stream.h"
#include "client/client_tls.h"
#include "client/client_write.h"

enum { HEAD_ROOM = 32 /* "fffffff\r\n", "\r\n", and the last chunk */ };

/* --- limits ------------------------------------------------------------------------------------------- */

static void on_limit(struct timer *timer)
{
    struct client_call *call = container_of(timer, struct client_call, limit);

    client_state_fail_late(call, call->has_head    ? "the response did not end in time"
                                 : call->connected ? "no response came in time"
                                                   : "no connection was to be had in time");
    call->on_event(call);
}

static void on_first_byte_limit(struct timer *timer)
{
    struct client_call *call = container_of(timer, struct client_call, first_byte);

    client_state_fail_late(call, "the response did not begin in time");
    call->on_event(call);
}

/* --- events --------------------------------------------------------------------------------------------- */

static void on_conn_event(struct client_conn *conn, void *arg)
{
    struct client_call *call = arg;

    call->turn_bytes = 0;
    client_write_flush(call);
    if (!call->has_head)
        client_read_head(call);
    call->on_event(call);
}

/* Behind a handshake bytes may be there that brought no event of their own. */
static void go(struct client_call *call)
{
    call->conn      = call->want.conn;
    call->want.conn = NULL;
    call->connected = true;
    if (call->conn->share) {
        client_stream_begin(call);
        return;
    }
    call->conn->on_event = on_conn_event;
    call->conn->arg      = call;
    client_write_flush(call);
    if (call->conn->stream.can_read)
        client_read_head(call);
}

static void fail_wanting(struct client_call *call)
{
    client_state_fail(call, call->want.fault, call->want.err.text);
}

static void on_wanted(struct client_want *want)
{
    struct client_call *call = container_of(want, struct client_call, want);

    if (want->conn)
        go(call);
    else
        fail_wanting(call);
    call->on_event(call);
}

static void on_report(struct later *later)
{
    struct client_call *call = container_of(later, struct client_call, report);

    call->turn_bytes = 0;
    if (call->stream_failed && !call->has_head)
        client_stream_next(call);
    if (call->send_failed && !call->has_head)
        client_read_head(call);
    call->on_event(call);
}

/* --- life ------------------------------------------------------------------------------------------------- */

static const struct client_tls *copy_tls(struct arena *arena, const struct client_tls *tls)
{
    struct client_tls *copy = arena_alloc(arena, sizeof(*copy));

    *copy      = *tls;
    copy->id   = arena_copy(arena, tls->id);
    copy->name = arena_copy(arena, tls->name);
    copy->ca   = arena_copy(arena, tls->ca);
    copy->cert = arena_copy(arena, tls->cert);
    copy->key  = arena_copy(arena, tls->key);
    copy->pins = arena_copy(arena, tls->pins);
    return copy;
}

static void copy_texts(struct client_call *call)
{
    struct client_target *target = &call->target;

    call->head   = arena_copy(&call->arena, call->head);
    target->key  = arena_copy(&call->arena, target->key);
    target->host = arena_copy(&call->arena, target->host);
    if (target->path)
        target->path = arena_copy(&call->arena, str_of(target->path)).at;
    if (target->tunnel.len)
        target->tunnel = arena_copy(&call->arena, target->tunnel);
    if (target->tls)
        target->tls = copy_tls(&call->arena, target->tls);
    if (target->proxy_tls)
        target->proxy_tls = copy_tls(&call->arena, target->proxy_tls);
}

void client_call_start(struct client_call *call, struct http_client *client, struct loop *loop,
                       struct arena_pool *arenas)
{
    int what;

    call->started = true;
    call->client  = client;
    call->loop    = loop;
    arena_init(&call->arena, arenas);
    later_init(&call->report, on_report);
    timer_init(&call->limit, on_limit);
    timer_init(&call->first_byte, on_first_byte_limit);
    buf_init(&call->out, CALL_OUT_BYTES_MAX + HEAD_ROOM);
    h1_gate_init_response(&call->gate);
    copy_texts(call);
    call->target.events = &CLIENT_STREAM_EVENTS;
    call->body_ended    = call->body_kind == CALL_BODY_WHOLE ||
                       (call->body_kind == CALL_BODY_LENGTH && !call->body_left);
    call->want.done = on_wanted;
    if (call->total_ms)
        timer_start(&call->limit, loop, call->total_ms);
    what = client_want_start(&call->want, client, &call->target);
    if (what == 0)
        return;
    if (what > 0)
        go(call);
    else
        fail_wanting(call);
    loop_later(loop, &call->report);
}

void client_call_fail(struct client_call *call, const char *fault, const char *text)
{
    client_state_fail(call, fault, text);
}

void client_call_limit(struct client_call *call, uint64_t ms)
{
    timer_stop(&call->limit, call->loop);
    if (ms && !call->ended && !call->fault)
        timer_start(&call->limit, call->loop, ms);
}

void client_call_close(struct client_call *call)
{
    if (!call->started)
        return;
    call->started = false;
    if (!call->ended)
        client_state_fail(call, "closed", "the call was closed");
    later_cancel(&call->report);
    client_state_stop_timers(call);
    coding_free(call->coding);
    call->coding = NULL;
    buf_fini(&call->out);
    buf_fini(&call->in);
    arena_reset(&call->arena);
}
