#include "ev/advance.h"

#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "ev/wheel.h"

enum { BUSY_PAUSE_US = 100 };

/* Only from where the loop is idle: it looks before on_again() runs. */
static void look_again(struct advance *advance)
{
    loop_later(advance->loop, &advance->again);
}

static void on_again(struct later *again)
{
    struct advance *advance = container_of(again, struct advance, again);

    advance->looked = true;
}

/* Their messages are in the inbox before they count as idle, so one look after that finds all. */
static bool threads_work(struct advance *advance)
{
    struct timespec pause = { .tv_nsec = BUSY_PAUSE_US * NS_PER_US };

    if (!advance->is_busy || !advance->is_busy(advance->arg))
        return false;
    nanosleep(&pause, NULL);
    return true;
}

static void step(struct advance *advance)
{
    uint64_t next_ns = wheel_next_ns(loop_wheel(advance->loop));
    uint64_t now_ns  = loop_now_ns(advance->loop);

    if (next_ns > advance->to_ns && now_ns >= advance->to_ns) {
        advance_stop(advance);
        advance->on_done(advance->arg);
        return;
    }
    if (next_ns > advance->to_ns)
        next_ns = advance->to_ns;
    loop_move_clock(advance->loop, next_ns > now_ns ? next_ns : now_ns);
    advance->looked = false;
    if (wheel_next_ns(loop_wheel(advance->loop)) > loop_now_ns(advance->loop))
        look_again(advance); /* else the timers come first */
}

static void on_idle(struct loop_hook *hook)
{
    struct advance *advance = container_of(hook, struct advance, idle);

    if (threads_work(advance))
        advance->looked = false;
    else if (advance->looked && loop_is_quiet(advance->loop)) {
        step(advance);
        return;
    }
    look_again(advance);
}

void advance_init(struct advance *advance, struct loop *loop, bool (*is_busy)(void *arg),
                  void (*on_done)(void *arg), void     *arg)
{
    *advance = (struct advance){ .loop = loop, .is_busy = is_busy, .on_done = on_done, .arg = arg };
    loop_hook_init(&advance->idle, on_idle);
    later_init(&advance->again, on_again);
}

void advance_start(struct advance *advance, uint64_t by_ns)
{
    assert(!advance->running);
    if (__builtin_add_overflow(loop_now_ns(advance->loop), by_ns, &advance->to_ns))
        advance->to_ns = UINT64_MAX - 1;
    advance->running = true;
    advance->looked  = false;
    loop_on_idle(advance->loop, &advance->idle);
}

void advance_stop(struct advance *advance)
{
    advance->running = false;
    loop_hook_remove(&advance->idle);
    later_cancel(&advance->again);
}
