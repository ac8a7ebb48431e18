#include "data/pg_budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "ev/inbox.h"

struct pg_budget {
    struct list link;
    struct list members;
    unsigned    open, max;
    char        key[];
};

struct pg_member {
    struct message     message;
    struct list        link; /* in budget->members */
    struct pg_budgets *all;
    struct pg_budget  *budget; /* NULL: it has left, and lives for the message only */
    struct inbox      *inbox;
    void (*on_nudge)(void *arg);
    void *arg;
    bool  posted;
    bool  hungry;
};

void pg_budgets_init(struct pg_budgets *budgets)
{
    pthread_mutex_init(&budgets->lock, NULL);
    list_init(&budgets->list);
}

void pg_budgets_fini(struct pg_budgets *budgets)
{
    pthread_mutex_destroy(&budgets->lock);
}

/* --- messages -------------------------------------------------------------------------------- */

/* True: it is still a member. Else it is freed. */
static bool take_message(struct pg_member *member)
{
    bool is_member;

    pthread_mutex_lock(&member->all->lock);
    member->posted = false;
    is_member      = member->budget != NULL;
    pthread_mutex_unlock(&member->all->lock);
    if (!is_member)
        free(member);
    return is_member;
}

static void deliver(struct message *message)
{
    struct pg_member *member = container_of(message, struct pg_member, message);

    if (take_message(member))
        member->on_nudge(member->arg);
}

static void drop(struct message *message)
{
    take_message(container_of(message, struct pg_member, message));
}

/* Those that are to be told, gathered under the lock and told outside of it: a message that
 * cannot arrive is dropped at once, which takes the lock. */
enum { TOLD_MAX = 256 };

struct told {
    struct pg_member *members[TOLD_MAX];
    unsigned          count;
};

static void gather(struct told *told, struct pg_member *member)
{
    if (member->posted || told->count == TOLD_MAX)
        return;
    member->posted               = true;
    told->members[told->count++] = member;
}

static void tell(struct told *told)
{
    for (unsigned i = 0; i < told->count; i++)
        inbox_post(told->members[i]->inbox, &told->members[i]->message);
}

/* --- membership ------------------------------------------------------------------------------- */

static struct pg_budget *find(struct pg_budgets *budgets, const char *key, unsigned max)
{
    list_each(node, &budgets->list)
    {
        struct pg_budget *budget = container_of(node, struct pg_budget, link);

        if (budget->max == max && strcmp(budget->key, key) == 0)
            return budget;
    }
    return NULL;
}

static struct pg_budget *find_or_make(struct pg_budgets *budgets, const char *key, unsigned max)
{
    struct pg_budget *budget = find(budgets, key, max);

    if (budget)
        return budget;
    budget = calloc(1, sizeof(*budget) + strlen(key) + 1);
    if (!budget)
        return NULL;
    budget->max = max;
    memcpy(budget->key, key, strlen(key));
    list_init(&budget->members);
    list_append(&budgets->list, &budget->link);
    return budget;
}

struct pg_member *pg_budget_join(struct pg_budgets *budgets, const char *key, unsigned max,
                                 struct inbox *inbox, void (*on_nudge)(void *arg), void *arg)
{
    struct pg_member *member = malloc(sizeof(*member));

    if (!member)
        return NULL;
    *member = (struct pg_member){ .message  = { .deliver = deliver, .drop = drop },
                                  .all      = budgets,
                                  .inbox    = inbox,
                                  .on_nudge = on_nudge,
                                  .arg      = arg };
    list_init(&member->link);
    pthread_mutex_lock(&budgets->lock);
    member->budget = find_or_make(budgets, key, max);
    if (member->budget)
        list_append(&member->budget->members, &member->link);
    pthread_mutex_unlock(&budgets->lock);
    if (member->budget)
        return member;
    free(member);
    return NULL;
}

void pg_budget_leave(struct pg_member *member)
{
    struct pg_budgets *all    = member->all;
    struct pg_budget  *budget = member->budget;
    bool               posted;

    pthread_mutex_lock(&all->lock);
    list_remove(&member->link);
    member->budget = NULL;
    posted         = member->posted;
    if (list_is_empty(&budget->members)) {
        list_remove(&budget->link);
        free(budget);
    }
    pthread_mutex_unlock(&all->lock);
    if (!posted)
        free(member);
}

/* --- counting --------------------------------------------------------------------------------- */

bool pg_budget_take(struct pg_member *member, bool forced)
{
    struct pg_budget *budget = member->budget;
    struct told       told   = { .count = 0 };
    bool              taken;

    pthread_mutex_lock(&member->all->lock);
    taken = forced || budget->open < budget->max;
    budget->open += taken;
    member->hungry = !taken;
    if (!taken)
        list_each(node, &budget->members) if (node != &member->link)
            gather(&told, container_of(node, struct pg_member, link));
    pthread_mutex_unlock(&member->all->lock);
    tell(&told);
    return taken;
}

void pg_budget_give(struct pg_member *member)
{
    struct pg_budget *budget = member->budget;
    struct told       told   = { .count = 0 };

    pthread_mutex_lock(&member->all->lock);
    budget->open--;
    list_each(node, &budget->members)
    {
        struct pg_member *other = container_of(node, struct pg_member, link);

        if (other->hungry)
            gather(&told, other);
    }
    pthread_mutex_unlock(&member->all->lock);
    tell(&told);
}

void pg_budget_is_fed(struct pg_member *member)
{
    pthread_mutex_lock(&member->all->lock);
    member->hungry = false;
    pthread_mutex_unlock(&member->all->lock);
}

bool pg_budget_others_hungry(struct pg_member *member)
{
    bool hungry = false;

    pthread_mutex_lock(&member->all->lock);
    list_each(node, &member->budget->members)
    {
        struct pg_member *other = container_of(node, struct pg_member, link);

        hungry |= other != member && other->hungry;
    }
    pthread_mutex_unlock(&member->all->lock);
    return hungry;
}
