#include "bind/lwaits.h"

#include <stddef.h>

#include "bind/lgroup.h"
#include "bind/ltask.h"
#include "vm/task.h"

static bool is_awaited(const struct task *task)
{
    return lgroup_is_child(task) || ltask_is_awaited(task);
}

bool lwaits_for(const struct task *holder, const struct task *task)
{
    while (task != holder && task_parent(task) && is_awaited(task))
        task = task_parent(task);
    return task == holder;
}

bool lwaits_is_above(const struct task *holder, const struct task *task)
{
    while (task && task != holder)
        task = task_parent(task);
    return task != NULL;
}
