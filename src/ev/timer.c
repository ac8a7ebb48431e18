#include "ev/timer.h"

#include "base/clock.h"
#include "ev/loop.h"

enum { LIMIT_TICK_MS_MAX = 100 };

void timer_init(struct timer *timer, timer_fn fn)
{
    list_init(&timer->link);
    timer->due_ns = 0;
    timer->fn     = fn;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX - 1 : sum;
}

/* The clock is read here: counted from the start of a long turn, a sleep would end early. */
void timer_start_ns(struct timer *timer, struct loop *loop, uint64_t delay_ns)
{
    struct wheel *wheel = loop_wheel(loop);

    wheel_remove(wheel, timer);
    if (delay_ns == 0) {
        timer->due_ns = loop_now_ns(loop);
        wheel_add_soon(wheel, timer);
        return;
    }
    timer->due_ns = add_saturated(loop_clock_ns(loop), delay_ns);
    wheel_add(wheel, timer);
}

void timer_start(struct timer *timer, struct loop *loop, uint64_t delay_ms)
{
    uint64_t delay_ns;

    if (__builtin_mul_overflow(delay_ms, (uint64_t)NS_PER_MS, &delay_ns))
        delay_ns = UINT64_MAX;
    timer_start_ns(timer, loop, delay_ns);
}

void timer_stop(struct timer *timer, struct loop *loop)
{
    wheel_remove(loop_wheel(loop), timer);
}

/* A held clock is moved in leaps: there a limit ends when it is due. */
static uint64_t tick_ms(const struct limit_queue *queue)
{
    uint64_t tenth = queue->limit_ms / 10;

    if (loop_clock_is_held(queue->loop))
        return 1;
    return tenth < 1 ? 1 : tenth > LIMIT_TICK_MS_MAX ? LIMIT_TICK_MS_MAX : tenth;
}

static struct limit *first_limit(struct limit_queue *queue)
{
    return container_of(queue->running.next, struct limit, link);
}

/* Not before the oldest ends, so a queue that is only filled and emptied costs no wake-up, and
 * not sooner than one tick from now, so entries that end close together cost one. */
static void on_tick(struct timer *tick)
{
    struct limit_queue *queue = container_of(tick, struct limit_queue, tick);
    uint64_t            now   = loop_now_ms(queue->loop);
    uint64_t            wait;

    while (!list_is_empty(&queue->running) && first_limit(queue)->due_ms <= now) {
        struct limit *limit = first_limit(queue);

        list_remove(&limit->link);
        queue->fn(limit);
    }
    if (list_is_empty(&queue->running))
        return;
    wait = first_limit(queue)->due_ms - now;
    timer_start(tick, queue->loop, wait > tick_ms(queue) ? wait : tick_ms(queue));
}

void limit_queue_init(struct limit_queue *queue, struct loop *loop, uint64_t limit_ms, limit_fn fn)
{
    queue->loop     = loop;
    queue->limit_ms = limit_ms;
    queue->fn       = fn;
    list_init(&queue->running);
    timer_init(&queue->tick, on_tick);
}

void limit_queue_fini(struct limit_queue *queue)
{
    while (list_take_first(&queue->running))
        continue;
    timer_stop(&queue->tick, queue->loop);
}

void limit_init(struct limit *limit)
{
    list_init(&limit->link);
    limit->due_ms = 0;
}

/* One more, since the turn's time is cut to whole milliseconds: a limit never ends early. A held
 * clock stands on one. */
void limit_start(struct limit *limit, struct limit_queue *queue)
{
    uint64_t wait_ms;

    list_remove(&limit->link);
    if (queue->limit_ms == 0)
        return;
    wait_ms       = queue->limit_ms + !loop_clock_is_held(queue->loop);
    limit->due_ms = add_saturated(loop_now_ms(queue->loop), wait_ms);
    list_append(&queue->running, &limit->link);
    if (!timer_is_running(&queue->tick))
        timer_start(&queue->tick, queue->loop, wait_ms);
}

void limit_stop(struct limit *limit)
{
    list_remove(&limit->link);
}
