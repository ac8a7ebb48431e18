/* vm/sched.h - one scheduler for each worker: the queue of tasks that are ready, run once a turn
 * of the loop in protected batches. lua_resume() of a task happens nowhere else. */
#ifndef VM_SCHED_H
#define VM_SCHED_H

#include <stdint.h>

#include "ev/loop.h"

struct err;
struct sched;
struct task;

int sched_open(struct sched **out, struct loop *loop, unsigned worker_id, struct err *err);
/* No VM may be left. NULL is fine. */
void sched_close(struct sched *sched);
/* The task that runs now, or NULL. */
struct task *sched_running(const struct sched *sched);

/* For the watchdog, any thread: how many slices have begun. */
uint64_t sched_slices(const struct sched *sched);

/* Live tasks, of all VMs. */
unsigned sched_task_count(const struct sched *sched);

#endif
