#include "vm/profile_wait.h"

#include "base/compiler.h"
#include "vm/task_impl.h"
#include "vm/vm.h"

struct look {
    struct profile_wait  *wait;
    struct profile_store *store;
    const struct task    *task;
    uint32_t              stride; /* one task in so many is looked at */
};

/* Protected, for a stack may have to grow. */
static void look_at(lua_State *L, void *arg)
{
    const struct look          *look  = arg;
    struct profile_lua         *lua   = &look->wait->lua;
    struct profile_frame        label = { .kind = PROFILE_TASK, .name = look->task->label };
    const struct profile_frame *frames[PROFILE_DEPTH_MAX];
    unsigned                    depth = 0;

    profile_lua_waiting(lua, look->store, look->task);
    frames[0] = label.name ? profile_store_frame(look->store, &label) : NULL;
    depth += frames[0] != NULL;
    for (unsigned i = lua->depth; i-- > 0;)
        frames[depth++] = lua->frames[i];
    profile_store_add(look->store, PROFILE_WAITS, frames, depth, look->stride);
}

static uint32_t at_most(uint32_t count, uint32_t max)
{
    return (count + max - 1) / max;
}

/* Cells are looked at evenly, but those of another remainder each time. */
void profile_wait_look(struct profile_wait *wait, struct profile_store *store, struct sched *sched)
{
    uint32_t    cells = sched->chunk_count * TASK_CHUNK;
    uint32_t    thin  = at_most(sched->task_count, PROFILE_WAITS_MAX);
    uint32_t    far   = at_most(cells, PROFILE_CELLS_MAX);
    struct look look  = { wait, store, NULL, thin > far ? thin : far };

    for (uint32_t slot = wait->looks++ % look.stride; slot < cells; slot += look.stride) {
        struct task *task = cell_at(sched, slot);

        look.task = task;
        if (task && task->state == T_WAITING)
            vm_protect(task->vm, look_at, &look, NULL);
    }
}
