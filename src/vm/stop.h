/* vm/stop.h - ends a slice that does not end by itself: code that loops for ever.
 *
 * A count hook yields the coroutine amid its code and stays set until the scheduler has it back:
 * pcall has nothing to catch, and each generator's resumer yields in turn. The task is cancelled like
 * any other, so it is never resumed. */
#ifndef VM_STOP_H
#define VM_STOP_H

#include <stdint.h>

struct sched;

/* Ends slice number SLICE (sched_slices()), TOOK_MS old, at its next instruction; does nothing if that
 * one is over. task_reason() is then
 * "FILE:LINE: ran longer than slice_limit". Where no yield can pass (a comparator of table.sort) the
 * error `cancelled` is raised, again and again, until one can.
 *
 * Async-signal-safe, and only from a handler in the thread that runs the VM. To be repeated until
 * the slice has ended: the app may set a hook of its own in the place of ours, and a call amid
 * LuaJIT's own change of hooks may be lost. What no hook reaches goes on: a C function, a finalizer,
 * and code compiled by a LuaJIT without CHECKHOOK. */
void stop_slice(struct sched *sched, uint64_t slice, uint64_t took_ms);

#endif
