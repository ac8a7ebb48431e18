#include "data/redis_seats.h"

#include <assert.h>
#include <stdlib.h>

#include "data/fault.h"
#include "data/redis_call.h"
#include "data/redis_pipe.h"

struct redis_seat {
    struct list         link; /* in idle or taken */
    struct redis_seats *seats;
    struct redis_pipe   pipe;
    struct redis_call  *call;    /* that is under way on it */
    bool                is_kept; /* by a caller, between its calls */
    bool                is_down; /* kept, and the connection has gone */
};

static uint64_t now_ms(const struct redis_seats *seats)
{
    return loop_now_ms(seats->place->loop);
}

/* --- seats that become free ------------------------------------------------------------------------ */

static const struct redis_pipe_events EVENTS;

static void free_seat(struct redis_seat *seat)
{
    seat->seats->count--;
    list_remove(&seat->link);
    redis_pipe_fini(&seat->pipe);
    free(seat);
}

static struct redis_seat *new_seat(struct redis_seats *seats)
{
    struct redis_seat *seat = malloc(sizeof(*seat));

    if (!seat)
        return NULL;
    *seat = (struct redis_seat){ .seats = seats };
    redis_pipe_init(&seat->pipe, seats->place, &EVENTS);
    list_init(&seat->link);
    seats->count++;
    return seat;
}

/* An idle one, or one more; NULL: all are taken. */
static struct redis_seat *find_seat(struct redis_seats *seats)
{
    struct list *node = list_take_first(&seats->idle);

    if (node)
        return container_of(node, struct redis_seat, link);
    return seats->count < seats->seats_max ? new_seat(seats) : NULL;
}

static bool sit_down(struct redis_seat *seat, struct redis_call *call)
{
    struct redis_seats *seats = seat->seats;

    call->due_ms = call->waits ? REDIS_NEVER : now_ms(seats) + seats->timeout_ms;
    if (!redis_pipe_send(&seat->pipe, call))
        return false;
    call->seat    = NULL;
    seat->call    = call;
    seat->is_kept = false;
    list_remove(&seat->link);
    list_append(&seats->taken, &seat->link);
    return true;
}

static void watch(struct redis_seats *seats)
{
    struct redis_call *first;
    uint64_t           now = now_ms(seats);

    if (list_is_empty(&seats->waiting) || timer_is_running(&seats->overdue))
        return;
    first = container_of(seats->waiting.next, struct redis_call, link);
    timer_start(&seats->overdue, seats->place->loop, first->due_ms > now ? first->due_ms - now : 0);
}

/* A request fits, since nothing else is unsent on a seat. */
static void admit(struct redis_seats *seats)
{
    while (!list_is_empty(&seats->waiting)) {
        struct redis_seat *seat = find_seat(seats);
        struct redis_call *call;

        if (!seat)
            return;
        call = container_of(list_take_first(&seats->waiting), struct redis_call, link);
        seats->waiting_count--;
        if (!sit_down(seat, call))
            assert(!"a request within its own bound");
    }
}

static void set_busy(const struct redis_seats *seats, struct redis_call *call)
{
    fault_set(
        &call->fault, "busy",
        "all %u connections to Redis at %s for commands that wait are in use: give the client "
        "a larger `pool`, or let fewer tasks wait at once",
        seats->seats_max, seats->place->name);
}

static void on_overdue(struct timer *timer)
{
    struct redis_seats *seats = container_of(timer, struct redis_seats, overdue);
    uint64_t            now   = now_ms(seats);

    while (!list_is_empty(&seats->waiting)) {
        struct redis_call *call = container_of(seats->waiting.next, struct redis_call, link);

        if (call->due_ms > now)
            break;
        list_remove(&call->link);
        seats->waiting_count--;
        set_busy(seats, call);
        redis_call_end(call);
    }
    watch(seats);
}

/* --- events of a seat --------------------------------------------------------------------------------- */

static struct redis_seat *seat_of(struct redis_pipe *pipe)
{
    return container_of(pipe, struct redis_seat, pipe);
}

static void on_answer(struct redis_pipe *pipe, struct redis_call *call)
{
    struct redis_seat *seat = seat_of(pipe);

    seat->call = NULL;
    if (call->keeps) {
        seat->is_kept = true;
        call->seat    = seat;
        return;
    }
    list_remove(&seat->link);
    list_prepend(&seat->seats->idle, &seat->link);
    admit(seat->seats);
}

/* Of an idle one, or under a call: that has ended with the fault. */
static void on_down(struct redis_pipe *pipe, const struct fault *fault)
{
    struct redis_seat  *seat  = seat_of(pipe);
    struct redis_seats *seats = seat->seats;

    seat->call = NULL;
    if (seat->is_kept) {
        seat->is_down = true;
        return;
    }
    free_seat(seat);
    admit(seats);
}

static const struct redis_pipe_events EVENTS = { NULL, on_answer, on_down };

/* --- calls ------------------------------------------------------------------------------------------------ */

void redis_seats_init(struct redis_seats *seats, const struct redis_place *place)
{
    *seats = (struct redis_seats){ .place = place };
    list_init(&seats->idle);
    list_init(&seats->taken);
    list_init(&seats->waiting);
    timer_init(&seats->overdue, on_overdue);
}

static int go_on(struct redis_seat *seat, struct redis_call *call)
{
    assert(seat->is_kept && !seat->call);
    if (!seat->is_down && sit_down(seat, call))
        return 0;
    return fault_set(&call->fault, "unavailable",
                     "the connection to Redis at %s was lost amid a transaction",
                     seat->seats->place->name);
}

int redis_seats_start(struct redis_seats *seats, struct redis_call *call)
{
    struct redis_seat *seat;

    if (call->seat)
        return go_on(call->seat, call);
    seat = list_is_empty(&seats->waiting) ? find_seat(seats) : NULL;
    if (seat) {
        if (!sit_down(seat, call))
            assert(!"a request within its own bound");
        return 0;
    }
    if (seats->waiting_count == seats->waiting_max) {
        set_busy(seats, call);
        return -1;
    }
    call->due_ms = now_ms(seats) + seats->timeout_ms;
    list_append(&seats->waiting, &call->link);
    seats->waiting_count++;
    watch(seats);
    return 0;
}

/* What it has begun at the server ends with the connection. */
void redis_seats_cancel(struct redis_seats *seats, struct redis_call *call)
{
    struct redis_seat *seat = call->pipe ? seat_of(call->pipe) : NULL;

    call->is_orphan = true;
    if (!seat) {
        list_remove(&call->link);
        seats->waiting_count--;
        redis_call_end(call);
        return;
    }
    free_seat(seat);
    admit(seats);
}

void redis_seats_give_up(struct redis_seats *seats, struct redis_seat *seat)
{
    assert(seat->is_kept && !seat->call);
    free_seat(seat);
    admit(seats);
}

void redis_seats_fini(struct redis_seats *seats, const struct fault *fault)
{
    struct list *node;

    timer_stop(&seats->overdue, seats->place->loop);
    while ((node = list_take_first(&seats->waiting))) {
        struct redis_call *call = container_of(node, struct redis_call, link);

        call->fault = *fault;
        redis_call_end(call);
    }
    while ((node = list_take_first(&seats->taken))) {
        struct redis_seat *seat = container_of(node, struct redis_seat, link);

        redis_pipe_end(&seat->pipe, fault);
        free_seat(seat);
    }
    while ((node = list_take_first(&seats->idle)))
        free_seat(container_of(node, struct redis_seat, link));
}

static unsigned count_of(const struct list *list, bool ready_only)
{
    unsigned count = 0;

    list_each(node, list)
    {
        const struct redis_seat *seat = container_of(node, struct redis_seat, link);

        count += ready_only ? seat->pipe.conn.state == REDIS_CONN_READY : seat->call != NULL;
    }
    return count;
}

unsigned redis_seats_pending(const struct redis_seats *seats)
{
    return seats->waiting_count + count_of(&seats->taken, false);
}

unsigned redis_seats_ready(const struct redis_seats *seats)
{
    return count_of(&seats->taken, true) + count_of(&seats->idle, true);
}
