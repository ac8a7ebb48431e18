/* A call's way: pg_start() sends it at once where a shared wire is free, else it waits in `calls` and
 * the next round of the turn sends it. All that calls up (done()) happens in the turn.
 *
 * The server gone: the first connect that fails makes the pool *down*. Calls that wait are told, and
 * later ones are refused at once, until a connect that is tried again and again succeeds. */
#include "data/pg_pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "data/pg_budget.h"
#include "data/pg_guard.h"
#include "data/pg_op.h"
#include "data/pg_seat.h"

enum {
    LEFT_ALONE_MS  = 100,   /* a statement that runs for nobody as long as this is stopped */
    SLOW_MS        = 1000,  /* a head as old as this takes the wire out of sharing */
    CLEAN_MS       = 1000,  /* for a rollback, then the connection is closed */
    HUNG_GRACE_MS  = 2000,  /* the server should have ended a statement by itself long ago */
    LEASE_GRACE_MS = 500,   /* the server's own timeout comes first, and keeps the transaction */
    IDLE_MS        = 30000, /* unused connections are closed, but for one */
    UNUSED_MS      = 10000, /* without a handle: a new generation may come */
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 400,
    GROW_PAUSE_MS  = 1000,  /* after a connect that failed beside working ones */
    GROW_LOAD_US   = 3000,  /* waiting longer than this is worth another connection */
    HOLD_LOAD_US   = 10000, /* waiting longer than this is worse than to wait for a connection */
};

/* --- ends of calls ----------------------------------------------------------------------------- */

static void take_from_queue(struct pg_call *call)
{
    struct pg_pool *pool = call->pool;

    if (!list_is_linked(&call->link))
        return;
    list_remove(&call->link);
    pool->waiting--;
    pool->begins_waiting -= call->verb == PG_BEGIN;
    if (pool->waiting == 0)
        pg_budget_is_fed(pool->member);
}

static void fail_queue(struct list *queue, const struct fault *why)
{
    while (!list_is_empty(queue)) {
        struct pg_call *call = container_of(queue->next, struct pg_call, link);

        take_from_queue(call);
        call->fault = *why;
        pg_call_end(call);
    }
}

static int refuse_for(struct pg_call *call, const struct fault *why)
{
    call->fault = *why;
    return -1;
}

/* --- leases --------------------------------------------------------------------------------------- */

/* The lease has no connection from here on. */
static void lose_seat(struct pg_lease *lease, const struct fault *why)
{
    lease->seat->lease = NULL;
    lease->seat        = NULL;
    lease->fault       = *why;
}

/* Whoever else still waits for a statement in it is told so, in the next round of the turn. */
static void end_calls(struct pg_pool *pool, struct pg_wire *wire)
{
    list_each(node, &wire->ops)
    {
        struct pg_op   *op   = container_of(node, struct pg_op, link);
        struct pg_call *call = op->call;

        if (!call)
            continue;
        pg_op_orphan(wire, op);
        pool->stats.orphaned++;
        limit_stop(&call->limit);
        call->lease = NULL;
        list_append(&pool->ended, &call->link);
        pool->waiting++;
    }
}

static bool runs_something(const struct pg_wire *wire)
{
    return wire->depth > 0 || wire->copying;
}

/* There is a wire, or will be, that carries the request to stop it. */
static bool stops_soon(const struct pg_seat *seat)
{
    return seat->cancel || seat->pool->connecting > 0;
}

/* Takes the seat back from a lease. */
static void clean_seat(struct pg_seat *seat, bool spoiled)
{
    struct pg_wire *wire = &seat->wire;

    seat->lease = NULL;
    end_calls(seat->pool, wire);
    loop_later(seat->pool->loop, &seat->pool->round);
    pg_pool_tick(seat->pool);
    if (wire->state != PG_WIRE_READY)
        return; /* on_broken() is on its way */
    if (runs_something(wire)) {
        bool asked = pg_seat_cancel(seat);

        if ((!asked || wire->copying) && stops_soon(seat)) {
            pg_seat_set(seat, SEAT_STOPPING);
            return;
        }
        spoiled |= !asked;
    }
    if (spoiled || wire->simple || wire->copying) {
        pg_seat_doom(seat);
        return;
    }
    pg_seat_set(seat, SEAT_CLEANING);
    if (!pg_wire_is_clean(wire))
        pg_wire_post(wire, "rollback");
}

static void free_lease(struct pg_lease *lease)
{
    pg_pool_unuse(lease->pool);
    free(lease);
}

void pg_lease_close(struct pg_lease *lease)
{
    if (!lease)
        return;
    if (lease->seat)
        clean_seat(lease->seat, lease->spoiled);
    free_lease(lease);
}

static void give_lease(struct pg_seat *seat, struct pg_call *call)
{
    struct pg_lease *lease = calloc(1, sizeof(*lease));

    if (!lease) {
        fault_set(&call->fault, "unavailable", "no memory for a transaction");
        pg_call_end(call);
        return;
    }
    pg_seat_set(seat, SEAT_LEASED);
    lease->pool = seat->pool;
    lease->seat = seat;
    seat->lease = lease;
    call->lease = lease;
    pg_pool_use(lease->pool);
    call->wire = &seat->wire;
    if (call->no_limit)
        limit_stop(&call->limit);
    if (call->sql.len == 0 || pg_wire_send(&seat->wire, call) != 0)
        pg_call_end(call);
}

/* An idle wire, if one more stays for the others or no more can be had. A busy one has to be kept for
 * leases to come to rest at all, even if it is the only one: statements would follow each other on it
 * for ever. */
static struct pg_seat *seat_for_lease(struct pg_pool *pool)
{
    struct pg_seat *idle = NULL, *busy = NULL;
    unsigned        shared = pg_seats_shared(pool), reserved = 0;

    list_each(node, &pool->seats)
    {
        struct pg_seat *seat = container_of(node, struct pg_seat, link);

        if (seat->state == SEAT_RESERVED && pg_wire_is_clean(&seat->wire))
            return seat;
        reserved += seat->state == SEAT_RESERVED;
        if (pg_seat_is_shared(seat) && pg_wire_is_clean(&seat->wire))
            idle = seat;
        else if (pg_seat_is_shared(seat))
            busy = seat;
    }
    if (idle && shared > 1)
        return idle;
    if (pool->connecting >= pool->begins_waiting || pg_seat_open(pool))
        return NULL;
    if (!idle && busy && (shared > 1 || pool->connecting == 0) && reserved < pool->begins_waiting)
        pg_seat_set(busy, SEAT_RESERVED);
    return pool->connecting ? NULL : idle;
}

/* --- rounds ---------------------------------------------------------------------------------------- */

static void send_on(struct pg_seat *seat, struct pg_call *call)
{
    call->wire = &seat->wire;
    if (pg_wire_send(&seat->wire, call) != 0)
        pg_call_end(call);
}

static void reap(struct pg_pool *pool)
{
    list_each_safe(node, &pool->seats)
    {
        struct pg_seat *seat = container_of(node, struct pg_seat, link);

        if (seat->state == SEAT_DOOMED && seat->wire.live == 0)
            pg_seat_close(seat);
    }
}

/* For a statement of its own: NULL while it should wait for a connection, one that is being made or
 * one that comes to rest. */
static struct pg_seat *seat_for_call(struct pg_pool *pool, const struct pg_call *call)
{
    struct pg_seat *seat = pg_seats_best(pool, NULL, buf_str(&call->sql));

    if (!seat || seat->wire.load_us <= GROW_LOAD_US)
        return seat;
    if (pool->connecting <= pool->waiting - pool->begins_waiting)
        pg_seat_open(pool);
    return pool->connecting > 0 && seat->wire.load_us > HOLD_LOAD_US ? NULL : seat;
}

static void dispatch(struct pg_pool *pool)
{
    struct pg_seat *seat;

    while (!list_is_empty(&pool->calls)) {
        struct pg_call *call = container_of(pool->calls.next, struct pg_call, link);

        seat = seat_for_call(pool, call);
        if (!seat)
            break;
        take_from_queue(call);
        send_on(seat, call);
    }
    while (!list_is_empty(&pool->begins) && (seat = seat_for_lease(pool))) {
        struct pg_call *call = container_of(pool->begins.next, struct pg_call, link);

        take_from_queue(call);
        give_lease(seat, call);
    }
    if (!list_is_empty(&pool->calls) && pool->connecting == 0)
        pg_seat_open(pool);
}

static void on_round(struct later *later)
{
    struct pg_pool *pool = container_of(later, struct pg_pool, round);
    struct fault    over;

    fault_set(&over, "closed", "the transaction ended before this statement in it did");
    fail_queue(&pool->ended, &over);
    list_each(node, &pool->seats) pg_seat_settle(container_of(node, struct pg_seat, link));
    reap(pool);
    dispatch(pool);
}

/* --- the wires' hooks ----------------------------------------------------------------------------- */

static void come_up(struct pg_pool *pool)
{
    pool->down       = false;
    pool->backoff_ms = 0;
    timer_stop(&pool->retry, pool->loop);
}

/* A lease has left it. The request may have come before what it was to stop, so it is sent again. */
static void look_at_left(struct pg_seat *seat)
{
    if (pg_pool_is_older(seat->pool, seat->since_ns, CLEAN_MS))
        pg_seat_doom(seat);
    else if (runs_something(&seat->wire))
        pg_seat_cancel(seat);
    else
        pg_seat_settle(seat);
}

static bool is_left(const struct pg_seat *seat)
{
    return seat->state == SEAT_CLEANING || seat->state == SEAT_STOPPING;
}

static void look_at_all_left(struct pg_pool *pool)
{
    list_each(node, &pool->seats)
    {
        struct pg_seat *seat = container_of(node, struct pg_seat, link);

        if (is_left(seat))
            look_at_left(seat);
    }
}

static void on_ready(struct pg_wire *wire)
{
    struct pg_seat *seat = wire->arg;

    seat->pool->connecting--;
    pg_seat_set(seat, SEAT_SHARED);
    come_up(seat->pool);
    look_at_all_left(seat->pool); /* before a lease takes the wire */
    dispatch(seat->pool);
}

static void go_down(struct pg_pool *pool, const struct fault *why)
{
    pool->down       = true;
    pool->why        = *why;
    pool->backoff_ms = pool->backoff_ms == 0                   ? BACKOFF_MIN_MS
                       : pool->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
                                                               : pool->backoff_ms * 2;
    timer_start(&pool->retry, pool->loop, pool->backoff_ms);
    fail_queue(&pool->calls, why);
    fail_queue(&pool->begins, why);
}

static void on_retry(struct timer *timer)
{
    struct pg_pool *pool = container_of(timer, struct pg_pool, retry);

    if (pool->connecting == 0 && !pg_seat_open(pool))
        timer_start(&pool->retry, pool->loop, BACKOFF_MAX_MS);
}

static bool has_ready(const struct pg_pool *pool)
{
    bool ready = false;

    list_each(node, &pool->seats) ready |=
        container_of(node, struct pg_seat, link)->wire.state == PG_WIRE_READY;
    return ready;
}

/* Beside others that work it may be the server's own bound of connections, though all of them are
 * leased; a server that does not answer has hung, whatever else is open. */
static void on_connect_failed(struct pg_pool *pool, const struct fault *why, bool answered)
{
    pool->stats.connects_failed++;
    if (pg_seats_shared(pool) > 0 || (answered && has_ready(pool)))
        pool->grow_after_ns = pg_pool_now(pool) + (uint64_t)GROW_PAUSE_MS * NS_PER_MS;
    else if (pool->connecting == 0)
        go_down(pool, why);
}

static void on_broken(struct pg_wire *wire)
{
    struct pg_seat  *seat       = wire->arg;
    struct pg_pool  *pool       = seat->pool;
    struct pg_lease *lease      = seat->lease;
    struct fault     why        = wire->fault;
    bool             connecting = seat->state == SEAT_CONNECTING;
    bool             answered   = !wire->connect.timed_out;

    if (lease)
        lose_seat(lease, &why);
    pool->connecting -= connecting;
    pg_seat_close(seat);
    if (lease && lease->on_event)
        lease->on_event(lease);
    if (connecting)
        on_connect_failed(pool, &why, answered);
    else if (pool->users && pool->seat_count == 0 && !pool->down)
        pg_seat_open(pool);
    loop_later(pool->loop, &pool->round);
}

static void on_room(struct pg_wire *wire)
{
    struct pg_seat *seat = wire->arg;

    pg_seat_settle(seat);
    if (!list_is_empty(&seat->pool->calls) || !list_is_empty(&seat->pool->begins))
        dispatch(seat->pool);
}

static void on_note(struct pg_wire *wire, struct str channel, struct str text)
{
    struct pg_seat *seat = wire->arg;

    if (seat->lease && seat->lease->on_note)
        seat->lease->on_note(seat->lease, channel, text);
}

static void on_flow(struct pg_wire *wire)
{
    struct pg_seat *seat = wire->arg;

    if (seat->lease && seat->lease->on_event)
        seat->lease->on_event(seat->lease);
}

static const struct pg_wire_hooks HOOKS = { on_ready, on_broken, on_room, on_note, on_flow };

/* --- time ------------------------------------------------------------------------------------------ */

static bool is_hung(const struct pg_seat *seat)
{
    const struct pg_pool *pool = seat->pool;

    return pool->options.timeout_ms && pg_pool_is_older(pool, seat->wire.head_since_ns,
                                                        pool->options.timeout_ms + HUNG_GRACE_MS);
}

static void break_hung(struct pg_seat *seat)
{
    struct fault why;

    fault_set(&why, "unavailable", "PostgreSQL does not answer any more");
    pg_wire_break(&seat->wire, &why);
}

/* What runs there is for nobody. Where no other wire can carry the request and none can be had, the
 * connection goes: the server ends the statement by its own limit. */
static void stop_left_alone(struct pg_seat *seat)
{
    if (!pg_seat_cancel(seat) && !stops_soon(seat))
        pg_seat_doom(seat);
}

static void look_at_busy(struct pg_seat *seat)
{
    bool alone = pg_seat_is_left_alone(seat);

    if (seat->state == SEAT_SHARED &&
        pg_pool_is_older(seat->pool, seat->wire.head_since_ns, alone ? LEFT_ALONE_MS : SLOW_MS))
        pg_seat_set(seat, SEAT_RETIRED);
    if (seat->state != SEAT_RETIRED)
        return;
    if (is_hung(seat))
        break_hung(seat);
    else if (alone)
        stop_left_alone(seat);
}

static void look_at_idle(struct pg_seat *seat)
{
    struct pg_pool *pool = seat->pool;

    if (pg_seats_shared(pool) > 1 &&
        (pg_pool_is_older(pool, seat->since_ns, IDLE_MS) || pg_budget_others_hungry(pool->member)))
        pg_seat_doom(seat);
}

/* True: it has to be looked at again soon. */
static bool look_at(struct pg_seat *seat)
{
    if (is_left(seat))
        look_at_left(seat);
    else if (seat->wire.state == PG_WIRE_READY && seat->wire.depth > 0)
        look_at_busy(seat);
    else if (pg_seat_is_shared(seat))
        look_at_idle(seat);
    else
        pg_seat_settle(seat);
    return seat->state != SEAT_SHARED || seat->wire.depth > 0;
}

static void on_tick(struct timer *timer)
{
    struct pg_pool *pool = container_of(timer, struct pg_pool, tick);
    bool            busy = pool->seat_count > 1 || pool->waiting > 0;

    list_each_safe(node, &pool->seats) busy |= look_at(container_of(node, struct pg_seat, link));
    if (pool->waiting > 0)
        loop_later(pool->loop, &pool->round);
    if (busy)
        pg_pool_tick(pool);
}

static void on_nudge(void *arg)
{
    struct pg_pool *pool = arg;

    if (pool->waiting > 0) {
        dispatch(pool);
        return;
    }
    list_each_safe(node, &pool->seats)
    {
        struct pg_seat *seat = container_of(node, struct pg_seat, link);

        if (pg_seat_is_shared(seat) && seat->wire.depth == 0)
            look_at_idle(seat);
    }
}

static void time_out(struct pg_call *call)
{
    struct pg_wire    *wire = call->wire;
    unsigned long long ms   = (unsigned long long)call->pool->options.timeout_ms;

    if (!call->op) {
        take_from_queue(call);
        fault_set(&call->fault, "timeout", "no connection to PostgreSQL was free within %llu ms",
                  ms);
        pg_call_end(call);
        return;
    }
    fault_set(&call->fault, "timeout", "the statement took longer than %llu ms", ms);
    pg_wire_orphan(wire, call);
    call->pool->stats.orphaned++;
    if (call->lease)
        pg_wire_break(wire, &call->fault);
    pg_call_end(call);
}

static void on_limit(struct limit *limit)
{
    time_out(container_of(limit, struct pg_call, limit));
}

/* --- calls ------------------------------------------------------------------------------------------ */

static int start_in_lease(struct pg_call *call)
{
    struct pg_lease *lease = call->lease;

    if (!lease->seat)
        return refuse_for(call, &lease->fault);
    if (lease->seat->wire.depth >= PG_WIRE_DEPTH_MAX)
        return fault_set(&call->fault, "busy", "%d statements of this transaction run already",
                         PG_WIRE_DEPTH_MAX);
    call->wire = &lease->seat->wire;
    if (pg_wire_send(call->wire, call) != 0)
        return -1;
    if (!call->no_limit)
        limit_start(&call->limit, &call->pool->lease_limits);
    return 0;
}

static int wait_in(struct pg_pool *pool, struct list *queue, struct pg_call *call)
{
    if (pool->waiting >= pool->options.waiting)
        return fault_set(&call->fault, "busy",
                         "%u calls wait for a connection to PostgreSQL already", pool->waiting);
    list_append(queue, &call->link);
    pool->waiting++;
    pool->begins_waiting += call->verb == PG_BEGIN;
    limit_start(&call->limit, &pool->limits);
    loop_later(pool->loop, &pool->round);
    pg_pool_tick(pool);
    return 0;
}

static int start_shared(struct pg_call *call, struct pg_pool *pool)
{
    struct pg_seat *seat = list_is_empty(&pool->calls) ? seat_for_call(pool, call) : NULL;

    if (!seat && pool->down && pg_seats_shared(pool) == 0)
        return refuse_for(call, &pool->why);
    if (!seat)
        return wait_in(pool, &pool->calls, call);
    call->wire = &seat->wire;
    if (pg_wire_send(&seat->wire, call) != 0)
        return -1;
    limit_start(&call->limit, &pool->limits);
    pg_pool_tick(pool);
    return 0;
}

int pg_start(struct pg_call *call, struct pg_pool *pool)
{
    const char *wrong = call->own ? NULL : pg_guard(buf_str(&call->sql), call->lease != NULL);

    call->pool = pool;
    if (wrong)
        return fault_set(&call->fault, "sql", "this statement is not for the app: %s", wrong);
    pool->stats.statements++;
    if (call->lease && !call->own)
        call->lease->spoiled |= pg_guard_outlasts(buf_str(&call->sql));
    if (call->lease)
        return start_in_lease(call);
    if (call->verb != PG_BEGIN)
        return start_shared(call, pool);
    return pool->down && pg_seats_shared(pool) == 0 ? refuse_for(call, &pool->why)
                                                    : wait_in(pool, &pool->begins, call);
}

void pg_cancel(struct pg_call *call)
{
    struct pg_lease *lease = call->lease;
    struct fault     why;

    limit_stop(&call->limit);
    take_from_queue(call);
    if (!call->op)
        return;
    pg_wire_orphan(call->wire, call);
    call->pool->stats.orphaned++;
    if (!lease)
        return;
    if (lease->seat) {
        struct pg_seat *seat = lease->seat;

        fault_set(&why, "closed",
                  "the transaction is over: a statement in it was cancelled while it ran");
        lose_seat(lease, &why);
        clean_seat(seat, false);
    }
    if (call->verb == PG_BEGIN)
        free_lease(lease);
}

/* --- the pool ----------------------------------------------------------------------------------------- */

/* A handle may be closed while statements of it are on their way. */
static bool is_idle(const struct pg_pool *pool)
{
    unsigned live = pool->waiting;

    list_each(node, &pool->seats) live += container_of(node, struct pg_seat, link)->wire.live;
    return live == 0;
}

static void on_unused(struct timer *timer)
{
    struct pg_pool *pool = container_of(timer, struct pg_pool, unused);

    if (is_idle(pool))
        pool->on_unused(pool);
    else
        timer_start(&pool->unused, pool->loop, UNUSED_MS);
}

int pg_pool_init(struct pg_pool *pool, const struct pg_lib *lib, struct pg_budgets *budgets,
                 const struct pg_options *options, struct dns *dns, struct loop *loop,
                 struct err *err)
{
    int rc = pg_url_parse(&pool->url, lib, options->url, err);

    if (rc != 0)
        return rc;
    pool->lib         = lib;
    pool->loop        = loop;
    pool->dns         = dns;
    pool->hooks       = &HOOKS;
    pool->options     = *options;
    pool->key         = strdup(options->url);
    pool->options.url = pool->key;
    list_init(&pool->link);
    list_init(&pool->seats);
    list_init(&pool->calls);
    list_init(&pool->begins);
    list_init(&pool->ended);
    list_init(&pool->cancels);
    later_init(&pool->round, on_round);
    timer_init(&pool->retry, on_retry);
    timer_init(&pool->tick, on_tick);
    timer_init(&pool->unused, on_unused);
    limit_queue_init(&pool->limits, loop, options->timeout_ms, on_limit);
    limit_queue_init(&pool->lease_limits, loop,
                     options->timeout_ms ? options->timeout_ms + LEASE_GRACE_MS : 0, on_limit);
    if (pool->key)
        pool->member = pg_budget_join(budgets, pool->key, options->connections, loop_inbox(loop),
                                      on_nudge, pool);
    if (pool->member)
        return 0;
    pg_url_fini(&pool->url);
    free(pool->key);
    return err_set(err, ERR_MEMORY, "no memory for a pool of connections");
}

void pg_pool_use(struct pg_pool *pool)
{
    pool->users++;
    timer_stop(&pool->unused, pool->loop);
}

void pg_pool_unuse(struct pg_pool *pool)
{
    if (--pool->users == 0)
        timer_start(&pool->unused, pool->loop, UNUSED_MS);
}

void pg_pool_fini(struct pg_pool *pool)
{
    assert(pool->waiting == 0);
    pg_seats_close(pool);
    timer_stop(&pool->retry, pool->loop);
    timer_stop(&pool->tick, pool->loop);
    timer_stop(&pool->unused, pool->loop);
    later_cancel(&pool->round);
    limit_queue_fini(&pool->limits);
    limit_queue_fini(&pool->lease_limits);
    pg_budget_leave(pool->member);
    pg_own_types_fini(&pool->own_types);
    pg_url_fini(&pool->url);
    free(pool->key);
}

void pg_pool_stats(const struct pg_pool *pool, struct pg_stats *sum)
{
    list_each(node, &pool->seats)
    {
        const struct pg_seat *seat = container_of(node, struct pg_seat, link);

        sum->open += seat->state != SEAT_CONNECTING;
        sum->connecting += seat->state == SEAT_CONNECTING;
        sum->idle += seat->state == SEAT_SHARED && seat->wire.depth == 0;
        sum->leased += seat->state == SEAT_LEASED;
        sum->in_flight += seat->wire.depth;
    }
    sum->waiting += pool->waiting;
    sum->statements += pool->stats.statements;
    sum->orphaned += pool->stats.orphaned;
    sum->cancelled += pool->stats.cancelled;
    sum->connects += pool->stats.connects;
    sum->connects_failed += pool->stats.connects_failed;
}
