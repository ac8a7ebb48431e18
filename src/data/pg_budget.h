/* data/pg_budget.h - how many connections the process may have to one server, over all its workers.
 *
 * Connections belong to one worker's loop; here they are only counted. A worker that would like
 * another one and may not have it is *hungry*: the others are nudged to give up what they do not
 * use, and it is nudged when something was given. */
#ifndef DATA_PG_BUDGET_H
#define DATA_PG_BUDGET_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"

struct inbox;
struct pg_budget;
struct pg_member;

/* The process's budgets. */
struct pg_budgets {
    pthread_mutex_t lock;
    struct list     list;
};

void pg_budgets_init(struct pg_budgets *budgets);
void pg_budgets_fini(struct pg_budgets *budgets); /* nobody is a member any more */

/* ON_NUDGE(ARG) runs on the loop's thread, until pg_budget_leave(). KEY says which server, and as
 * whom; those who ask for another MAX have another budget. NULL: no memory. */
struct pg_member *pg_budget_join(struct pg_budgets *budgets, const char *key, unsigned max,
                                 struct inbox *inbox, void (*on_nudge)(void *arg), void *arg);
/* What it has taken must have been given back. */
void pg_budget_leave(struct pg_member *member);

/* One connection more. FORCED: a worker's first one is never denied. False: it is hungry now. */
bool pg_budget_take(struct pg_member *member, bool forced);
void pg_budget_give(struct pg_member *member);
/* It does not want one any more. */
void pg_budget_is_fed(struct pg_member *member);
/* Whether another worker waits for what this one could give. */
bool pg_budget_others_hungry(struct pg_member *member);

#endif
