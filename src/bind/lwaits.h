/* bind/lwaits.h - whether a task that asks for something would wait for ever: for one that waits for it.
 *
 * A child is no part of what its parent is in the middle of: it may have begun before, and may wait for the end
 * of it. Only where the parent goes on no sooner than the child has ended does neither of them. */
#ifndef BIND_LWAITS_H
#define BIND_LWAITS_H

#include <stdbool.h>

struct task;

/* HOLDER is TASK, or waits for it, or for one that does, without a limit. */
bool lwaits_for(const struct task *holder, const struct task *task);

/* HOLDER is TASK, or TASK is a child of it, or of its children. */
bool lwaits_is_above(const struct task *holder, const struct task *task);

#endif
