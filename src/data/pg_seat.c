#include "data/pg_seat.h"

#include <stdlib.h>

#include "base/clock.h"
#include "data/pg_budget.h"
#include "data/pg_call.h"

enum {
    TICK_MS        = 200,
    PACK_LOAD_US   = 500, /* waiting as long as this is better than waking another process */
    QUICK_US       = 300, /* statements that take no longer may wait for each other */
    QUICK_LOAD_US  = 2000,
    CONNECTING_MAX = 8,
};

/* A statement that asks the server to stop another. */
struct cancel {
    struct pg_call  call;
    struct list     link;   /* in pool->cancels */
    struct pg_seat *target; /* NULL: it has gone */
};

uint64_t pg_pool_now(const struct pg_pool *pool)
{
    return loop_now_ns(pool->loop);
}

bool pg_pool_is_older(const struct pg_pool *pool, uint64_t since_ns, uint64_t ms)
{
    return pg_pool_now(pool) > since_ns + ms * NS_PER_MS;
}

/* --- seats ------------------------------------------------------------------------------------ */

void pg_seat_set(struct pg_seat *seat, enum seat_state state)
{
    seat->state    = state;
    seat->since_ns = pg_pool_now(seat->pool);
}

void pg_seat_doom(struct pg_seat *seat)
{
    if (seat->state == SEAT_CONNECTING)
        seat->pool->connecting--;
    pg_seat_set(seat, SEAT_DOOMED);
    loop_later(seat->pool->loop, &seat->pool->round);
}

void pg_seat_close(struct pg_seat *seat)
{
    struct pg_pool *pool = seat->pool;

    if (seat->cancel)
        seat->cancel->target = NULL;
    list_remove(&seat->link);
    pg_wire_close(&seat->wire);
    pg_budget_give(pool->member);
    pool->seat_count--;
    free(seat);
}

void pg_pool_tick(struct pg_pool *pool)
{
    if (!timer_is_running(&pool->tick))
        timer_start(&pool->tick, pool->loop, TICK_MS);
}

/* Another connection, unless the budget or the pace forbids it. */
bool pg_seat_open(struct pg_pool *pool)
{
    struct pg_seat *seat;

    if (pool->connecting == CONNECTING_MAX || pg_pool_now(pool) < pool->grow_after_ns ||
        !pg_budget_take(pool->member, pool->seat_count == 0))
        return false;
    seat = calloc(1, sizeof(*seat));
    if (!seat) {
        pg_budget_give(pool->member);
        return false;
    }
    seat->pool           = pool;
    seat->wire.hooks     = pool->hooks;
    seat->wire.arg       = seat;
    seat->wire.own_types = &pool->own_types;
    seat->wire.costs     = &pool->costs;
    pg_seat_set(seat, SEAT_CONNECTING);
    list_append(&pool->seats, &seat->link);
    pool->seat_count++;
    pool->connecting++;
    pool->stats.connects++;
    pg_wire_open(&seat->wire, pool->lib, &pool->url, pool->dns, pool->loop,
                 pool->options.timeout_ms);
    pg_pool_tick(pool);
    return true;
}

bool pg_seat_is_shared(const struct pg_seat *seat)
{
    return seat->state == SEAT_SHARED && seat->wire.state == PG_WIRE_READY;
}

bool pg_seat_is_left_alone(const struct pg_seat *seat)
{
    return seat->wire.depth > 0 && seat->wire.live == 0;
}

unsigned pg_seats_shared(const struct pg_pool *pool)
{
    unsigned count = 0;

    list_each(node, &pool->seats) count +=
        pg_seat_is_shared(container_of(node, struct pg_seat, link));
    return count;
}

/* Behind what nobody waits for any more nobody should wait. */
static bool takes_more(const struct pg_seat *seat)
{
    return pg_seat_is_shared(seat) && seat->wire.depth < PG_WIRE_DEPTH_MAX &&
           !pg_seat_is_left_alone(seat);
}

/* Quick statements behind quick ones are one read of ours, and one process that is woken. */
static bool can_pack(const struct pg_wire *wire, bool quick)
{
    return wire->load_us < PACK_LOAD_US || (quick && wire->load_us < QUICK_LOAD_US &&
                                            wire->load_us <= (uint64_t)wire->depth * QUICK_US);
}

/* The first one where the wait is short: quick statements stay together on few connections, and
 * the last ones fall idle. Else the one that will be free first. */
struct pg_seat *pg_seats_best(const struct pg_pool *pool, const struct pg_seat *but, struct str sql)
{
    unsigned        cost  = pg_costs_of(&pool->costs, sql);
    bool            quick = cost > 0 && cost <= QUICK_US;
    struct pg_seat *best  = NULL;

    list_each(node, &pool->seats)
    {
        struct pg_seat *seat = container_of(node, struct pg_seat, link);

        if (seat == but || !takes_more(seat))
            continue;
        if (can_pack(&seat->wire, quick))
            return seat;
        if (!best || seat->wire.load_us < best->wire.load_us)
            best = seat;
    }
    return best;
}

void pg_seat_settle(struct pg_seat *seat)
{
    struct pg_wire *wire = &seat->wire;

    if (wire->depth > 0 || seat->cancel || wire->state != PG_WIRE_READY)
        return;
    switch (seat->state) {
    case SEAT_RESERVED:
        if (!list_is_empty(&seat->pool->begins))
            break;
        pg_seat_set(seat, SEAT_SHARED);
        break;
    case SEAT_SHARED:
    case SEAT_RETIRED:
    case SEAT_CLEANING:
        if (!pg_wire_is_clean(wire)) {
            pg_seat_doom(seat);
            return;
        }
        seat->pool->down = false;
        pg_seat_set(seat, SEAT_SHARED);
        break;
    default: break;
    }
}

/* --- cancelling what runs ------------------------------------------------------------------------ */

static void free_cancel(struct cancel *cancel)
{
    if (cancel->target)
        cancel->target->cancel = NULL;
    list_remove(&cancel->link);
    pg_call_fini(&cancel->call);
    free(cancel);
}

static void on_cancelled(struct pg_call *call)
{
    struct cancel  *cancel = container_of(call, struct cancel, call);
    struct pg_seat *target = cancel->target;

    free_cancel(cancel);
    if (target)
        pg_seat_settle(target);
}

static struct pg_seat *idle_seat(const struct pg_pool *pool)
{
    list_each(node, &pool->seats)
    {
        struct pg_seat *seat = container_of(node, struct pg_seat, link);

        if (pg_seat_is_shared(seat) && seat->wire.depth == 0)
            return seat;
    }
    return NULL;
}

/* A wire that is idle, or soon will be there; only where none can be had a busy one, which may itself
 * be held up. */
static struct pg_seat *carrier_for(struct pg_seat *seat)
{
    struct pg_pool *pool = seat->pool;
    struct pg_seat *idle = idle_seat(pool);

    if (idle || pool->connecting > 0 || pg_seat_open(pool))
        return idle;
    return pg_seats_best(pool, seat, STR_NONE);
}

/* By a statement on another wire, and not PQcancel(): that would block a thread, for good when the
 * server hangs, and goes without TLS. The seat is not used again before this is answered, so it can
 * not hit another statement. False: there is no other wire yet (pool->connecting), or at all. */
bool pg_seat_cancel(struct pg_seat *seat)
{
    struct pg_pool *pool  = seat->pool;
    struct pg_seat *other = seat->cancel ? NULL : carrier_for(seat);
    struct cancel  *cancel;

    if (!other)
        return seat->cancel != NULL;
    cancel = calloc(1, sizeof(*cancel));
    if (!cancel)
        return false;
    pg_call_init(&cancel->call, PG_RUN);
    cancel->call.done = on_cancelled;
    buf_add_str(&cancel->call.sql, STR("select pg_cancel_backend($1)"));
    values_add(&cancel->call.params, value_int(seat->wire.connect.pid));
    cancel->call.wire = &other->wire;
    list_append(&pool->cancels, &cancel->link);
    if (pg_wire_send(&other->wire, &cancel->call) != 0) {
        free_cancel(cancel);
        return false;
    }
    cancel->target = seat;
    seat->cancel   = cancel;
    pool->stats.cancelled++;
    return true;
}

void pg_seats_close(struct pg_pool *pool)
{
    while (!list_is_empty(&pool->cancels)) {
        struct cancel *cancel = container_of(pool->cancels.next, struct cancel, link);

        pg_wire_orphan(cancel->call.wire, &cancel->call);
        free_cancel(cancel);
    }
    while (!list_is_empty(&pool->seats))
        pg_seat_close(container_of(pool->seats.next, struct pg_seat, link));
}
