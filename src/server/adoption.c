#include "server/adoption.h"

#include <assert.h>

void adoption_init(struct adoption *adoption, unsigned worker_count, const struct adoption_ops *ops,
                   void *arg)
{
    assert(worker_count <= CONFIG_WORKERS_MAX);
    *adoption = (struct adoption){ .ops = ops, .arg = arg, .worker_count = worker_count };
    for (unsigned slot = 0; slot < worker_count; slot++)
        adoption->adopter[slot] = slot;
}

/* The slot's own worker, unless it is late; then the next one that is not. All are: its own. */
static unsigned choose(const struct adoption *adoption, unsigned slot)
{
    for (unsigned i = 0; i < adoption->worker_count; i++) {
        unsigned worker = (slot + i) % adoption->worker_count;

        if (!adoption->late[worker])
            return worker;
    }
    return slot;
}

static void settle(struct adoption *adoption, unsigned slot)
{
    unsigned before = adoption->adopter[slot], now = before;

    if (before == slot || adoption->late[before] || !adoption->late[slot])
        now = choose(adoption, slot);
    if (now == before)
        return;
    if (before != slot)
        adoption->ops->give_back(before, slot, adoption->arg);
    if (now != slot)
        adoption->ops->adopt(now, slot, adoption->arg);
    adoption->adopter[slot] = now;
}

static void settle_all(struct adoption *adoption)
{
    for (unsigned slot = 0; slot < adoption->worker_count; slot++)
        settle(adoption, slot);
}

void adoption_late(struct adoption *adoption, unsigned worker)
{
    adoption->late[worker] = true;
    settle_all(adoption);
}

void adoption_back(struct adoption *adoption, unsigned worker)
{
    adoption->late[worker] = false;
    settle_all(adoption);
}
