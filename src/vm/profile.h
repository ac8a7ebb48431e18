/* vm/profile.h - what one worker's thread spends its time with, by samples.
 *
 * SIGPROF to the thread takes one, from the thread's own timer (vm/profile_timer.h) or from anybody. Its handler notes the C functions and whose task it is; where Lua
 * runs, a count hook at the next instruction adds the Lua stack (vm/vm_interrupt.h), else the next
 * turn of the loop files the sample as it is. All samples that fall into one long C function have
 * the Lua stack of its caller, so the two are joined exactly. The tasks that wait are looked at
 * too (vm/profile_wait.h). */
#ifndef VM_PROFILE_H
#define VM_PROFILE_H

#include <stdbool.h>

struct err;
struct loop;
struct profile;
struct profile_store;
struct sched;

/* Once for the process, before any thread is started: the handler of SIGPROF, which does nothing in
 * a thread that has no profile. */
void profile_take_signals(void);

int  profile_open(struct profile **out, struct err *err);
void profile_close(struct profile *profile); /* has ended, or its thread has; NULL is fine */

/* Who interrupts workers claims them all first, for signals do not tell whose they are. False: somebody
 * else does. Any thread. */
bool profile_claim(void);
void profile_release(void);

/* The worker's thread, from the loop's turn: samples of it go to PROFILE from now on, unless they go to
 * another one. */
void profile_begin(struct profile *profile, struct sched *sched);
void profile_end(struct profile *profile); /* idempotent */
/* After profile_begin(): the thread interrupts itself, HZ times in a second of its CPU time at work.
 * False: the system has no timer left. */
bool profile_tick(struct profile *profile, unsigned hz);

/* What was seen; for others than the worker's thread once it has ended. */
struct profile_store *profile_seen(struct profile *profile);

#endif
