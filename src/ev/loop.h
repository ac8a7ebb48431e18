/* ev/loop.h - one event loop for each thread, on libevent's base and one timer wheel.
 *
 * A turn: wait for events, run their callbacks, run what was put off with loop_later(), fire due
 * timers, then look again. Everything here belongs to the loop's thread, but for loop_post()
 * (ev/inbox.h). Rule zero of the house: a function called from above sets state and returns; it
 * never calls back up. Events go up from the loop's turn alone. */
#ifndef EV_LOOP_H
#define EV_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h> /* struct event lives inside struct io */

#include "base/list.h"

struct err;
struct loop;
struct inbox;
struct wheel;

/* --- descriptors ------------------------------------------------------------------------- */

enum {
    IO_READ   = 0x02, /* EV_READ */
    IO_WRITE  = 0x04, /* EV_WRITE */
    IO_CLOSED = 0x80, /* EV_CLOSED: the peer sent FIN or RST */
};

/* WHAT is a set of IO_ bits. Runs on the loop's thread; may stop and free its own io. */
typedef void (*io_fn)(int fd, short what, void *arg);

/* Zeroed memory counts as stopped. */
struct io {
    struct event event;
    struct loop *loop;
    io_fn        fn;
    void        *arg;
};

/* One edge-triggered registration for READ, WRITE and CLOSED that stands until io_stop().
 * 0, or ERR_SYSTEM with errno set. */
int io_start_edge(struct io *io, struct loop *loop, int fd, io_fn fn, void *arg);
/* Level-triggered reading: listeners, eventfds, timerfds, inotify. */
int io_start_level(struct io *io, struct loop *loop, int fd, io_fn fn, void *arg);
/* Idempotent. The callback does not run again once this returns. Does not close the fd. */
void io_stop(struct io *io);

/* --- work put off within the turn ---------------------------------------------------------- */

/* Runs after this turn's callbacks, in the order asked for. Work that asks for itself again runs
 * in the next round; the loop does not sleep while any is left. */
struct later {
    struct list link;
    void (*fn)(struct later *self);
};

void later_init(struct later *later, void (*fn)(struct later *self));
void loop_later(struct loop *loop, struct later *later); /* asked twice: runs once */
void later_cancel(struct later *later);

/* --- hooks ---------------------------------------------------------------------------------- */

/* Runs each time, until removed. Belongs to whoever registered it. */
struct loop_hook {
    struct list link;
    void (*fn)(struct loop_hook *self);
};

void loop_hook_init(struct loop_hook *hook, void (*fn)(struct loop_hook *self));
/* FN runs first thing in each turn, before any callback: loop_now_ns() is fresh. */
void loop_on_turn(struct loop *loop, struct loop_hook *hook);
/* FN runs when nothing is left to do but wait for the sockets, so in most turns: bounded work
 * (a step of the collector), or the next request pays for it. It may ask for more with
 * loop_later() or a timer. */
void loop_on_idle(struct loop *loop, struct loop_hook *hook);
void loop_hook_remove(struct loop_hook *hook); /* idempotent */

/* --- the loop ------------------------------------------------------------------------------ */

int  loop_open(struct loop **out, struct err *err);
void loop_close(struct loop *loop); /* nothing may be registered any more; NULL is fine */

/* Runs turns until loop_break(), which lets the turn it is called in end. Called while the loop
 * does not run, it makes the next loop_run() return at once. Another thread breaks a loop by
 * posting a message that does. */
void loop_run(struct loop *loop);
void loop_break(struct loop *loop);

/* loop_clock_ns() as it was when the turn began: cheap, and equal within a turn. */
uint64_t loop_now_ns(const struct loop *loop);
uint64_t loop_now_ms(const struct loop *loop);

/* What clock_mono_ns() and clock_wall_ms() say, unless the loop's clock was held. */
uint64_t loop_clock_ns(const struct loop *loop);
int64_t  loop_wall_ms(const struct loop *loop);

/* --- a clock that tests hold (ev/advance.h drives it) ---------------------------------------- */

/* The time of this loop stands, and with it all timers and limits, until it is moved or released;
 * sockets and other threads go on. Idempotent, both. */
void loop_hold_clock(struct loop *loop);
/* The wall clock is the kernel's again; the monotonic one runs on from where it stands. */
void loop_release_clock(struct loop *loop);
bool loop_clock_is_held(const struct loop *loop);
/* Not back. What is due by then fires in this turn. */
void loop_move_clock(struct loop *loop, uint64_t to_ns);
/* The last look at the sockets found nothing. */
bool loop_is_quiet(const struct loop *loop);

/* For ev/timer.c. */
struct wheel *loop_wheel(struct loop *loop);

/* Where other threads post to this loop (ev/inbox.h). Owned by the loop. */
struct inbox *loop_inbox(struct loop *loop);

/* For the watchdog, any thread: number of turns begun, and the monotonic ns at which the running
 * turn began; 0 while the loop sleeps. */
uint64_t loop_turns(const struct loop *loop);
uint64_t loop_busy_since_ns(const struct loop *loop);

#endif
