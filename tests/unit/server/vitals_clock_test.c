#include "server/vitals_clock.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "bind/lend.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "server/vitals_worker.h"
#include "support/check.h"
#include "vm/profile.h"

enum { EVERY_MS = 20 };

/* A loop on a thread, which a message keeps busy until it is let go; and what the clock told. */
struct scene {
    struct loop         *loop;
    struct thread        thread;
    struct message       hold, end;
    sem_t                held, let_go, told;
    struct vitals_worker vitals; /* numbers alone: no worker stands behind them */
    struct vitals_clock *clock;
    atomic_uint          lines;
    atomic_uint          late_ms; /* as the last line has it */
};

static void hold(struct message *message)
{
    struct scene *scene = container_of(message, struct scene, hold);

    sem_post(&scene->held);
    sem_wait(&scene->let_go);
}

static void end(struct message *message)
{
    loop_break(container_of(message, struct scene, end)->loop);
}

static void drop(struct message *message)
{
}

static void loop_main(void *arg)
{
    loop_run(((struct scene *)arg)->loop);
}

static void on_line(struct buf *line, void *arg)
{
    struct scene *scene = arg;
    const char   *at;

    buf_add_byte(line, '\0');
    at = strstr(line->at, "\"delay_max\":");
    atomic_store(&scene->late_ms, at ? (unsigned)atof(at + strlen("\"delay_max\":")) : 0);
    atomic_fetch_add(&scene->lines, 1);
    buf_fini(line);
    sem_post(&scene->told);
}

static void hold_loop(struct scene *scene)
{
    scene->hold = (struct message){ .deliver = hold, .drop = drop };
    inbox_post(loop_inbox(scene->loop), &scene->hold);
    while (sem_wait(&scene->held) != 0)
        continue;
}

static void open_scene(struct scene *scene)
{
    static const struct lend NOTHING_LENT;
    struct err               err;
    struct vitals_target     target;

    profile_take_signals(); /* the clock's are to find a handler */
    sem_init(&scene->held, 0, 0);
    sem_init(&scene->let_go, 0, 0);
    sem_init(&scene->told, 0, 0);
    CHECK_INT(loop_open(&scene->loop, &err), 0);
    CHECK_INT(thread_start(&scene->thread, "held", 0, loop_main, scene, &err), 0);
    hold_loop(scene); /* it has begun, and sleeps: only then is it looked at */
    sem_post(&scene->let_go);
    while (loop_busy_since_ns(scene->loop) != 0)
        sched_yield();
    target = (struct vitals_target){ scene->thread.id, scene->loop, &scene->vitals, -1 };
    CHECK_INT(vitals_clock_open(&scene->clock,
                                &(struct vitals_clock_options){ .targets  = &target,
                                                                .count    = 1,
                                                                .lend     = &NOTHING_LENT,
                                                                .every_ms = EVERY_MS,
                                                                .on_line  = on_line,
                                                                .arg      = scene },
                                &err),
              0);
}

static void close_scene(struct scene *scene)
{
    scene->end = (struct message){ .deliver = end, .drop = drop };
    inbox_post(loop_inbox(scene->loop), &scene->end);
    thread_join(&scene->thread);
    loop_close(scene->loop);
}

static void wait_lines(struct scene *scene, unsigned count)
{
    while (count-- > 0)
        while (sem_wait(&scene->told) != 0)
            continue;
}

TEST(a_turn_is_seen_growing_while_it_lasts)
{
    static struct scene scene;
    unsigned            early;

    open_scene(&scene);
    hold_loop(&scene);
    wait_lines(&scene, 4);
    early = atomic_load(&scene.late_ms);
    wait_lines(&scene, 4);
    CHECK(atomic_load(&scene.late_ms) > early);
    sem_post(&scene.let_go);
    vitals_clock_close(scene.clock);
    close_scene(&scene);
}

TEST(nothing_is_told_after_the_end)
{
    static struct scene scene;
    unsigned            lines;

    open_scene(&scene);
    wait_lines(&scene, 2);
    vitals_clock_close(scene.clock);
    lines = atomic_load(&scene.lines);
    CHECK(lines >= 3); /* the last one is told at the end */
    close_scene(&scene);
    CHECK_INT((int)atomic_load(&scene.lines), (int)lines);
}

TEST(a_loop_that_sleeps_is_not_late)
{
    static struct scene scene;

    open_scene(&scene);
    wait_lines(&scene, 3);
    CHECK_INT((int)atomic_load(&scene.late_ms), 0);
    vitals_clock_close(scene.clock);
    close_scene(&scene);
}

int main(void)
{
    return check_run();
}
