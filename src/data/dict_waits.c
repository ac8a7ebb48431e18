#include "data/dict_waits.h"

#include <stddef.h>

#include "base/compiler.h"

void dict_waits_init(struct dict_waits *waits)
{
    for (unsigned i = 0; i < DICT_WAIT_LISTS; i++)
        list_init(&waits->waiters[i]);
    list_init(&waits->leases);
    waits->waiter_count = 0;
}

static struct list *list_of(struct dict_waits *waits, uint64_t hash)
{
    return &waits->waiters[hash % DICT_WAIT_LISTS];
}

static struct dict_waiter *waiter_of(struct list *node)
{
    return container_of(node, struct dict_waiter, link);
}

bool dict_waits_add(struct dict_waits *waits, struct dict_waiter *waiter, struct dict_lease *lease)
{
    if (waits->waiter_count >= DICT_WAITERS_MAX)
        return false;
    waits->waiter_count++;
    waiter->queued = true;
    list_append(lease ? &lease->waiters : list_of(waits, waiter->hash), &waiter->link);
    return true;
}

bool dict_waits_remove(struct dict_waits *waits, struct dict_waiter *waiter)
{
    if (!waiter->queued)
        return false;
    waiter->queued = false;
    list_remove(&waiter->link);
    waits->waiter_count--;
    return true;
}

void dict_waits_take(struct dict_waits *waits, struct dict_waiter *waiter, struct list *woken)
{
    waiter->queued = false;
    list_remove(&waiter->link);
    list_append(woken, &waiter->link);
    waits->waiter_count--;
}

static void take_those_of(struct dict_waits *waits, struct list *list, uint64_t hash,
                          struct list *woken)
{
    list_each_safe(node, list)
    {
        struct dict_waiter *waiter = waiter_of(node);

        if (waiter->hash == hash)
            dict_waits_take(waits, waiter, woken);
    }
}

void dict_waits_change(struct dict_waits *waits, uint64_t hash, bool has_value, struct list *woken)
{
    struct dict_lease *lease;

    if (waits->waiter_count == 0)
        return;
    take_those_of(waits, list_of(waits, hash), hash, woken);
    lease = has_value ? dict_waits_find_lease(waits, hash) : NULL;
    if (lease)
        take_those_of(waits, &lease->waiters, hash, woken);
}

struct dict_lease *dict_waits_find_lease(struct dict_waits *waits, uint64_t hash)
{
    list_each(node, &waits->leases)
    {
        struct dict_lease *lease = container_of(node, struct dict_lease, link);

        if (lease->hash == hash)
            return lease;
    }
    return NULL;
}

/* The other thread may free a waiter as soon as it is posted. */
void dict_waits_send(struct list *woken)
{
    struct list *node;

    while ((node = list_take_first(woken)) != NULL) {
        struct dict_waiter *waiter = waiter_of(node);

        inbox_post(waiter->home, &waiter->message);
    }
}
