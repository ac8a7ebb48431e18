/* vm/profile_wait.h - a look at the tasks that wait: where, and so for what. */
#ifndef VM_PROFILE_WAIT_H
#define VM_PROFILE_WAIT_H

#include "vm/profile_lua.h"

struct profile_store;
struct sched;

enum {
    PROFILE_WAIT_MS   = 10,   /* from look to look */
    PROFILE_WAITS_MAX = 200,  /* tasks in one look; of more, some stand for the others */
    PROFILE_CELLS_MAX = 2048, /* cells in one look */
};

struct profile_wait {
    unsigned           looks;
    struct profile_lua lua;
};

/* From the loop's turn. */
void profile_wait_look(struct profile_wait *wait, struct profile_store *store, struct sched *sched);

#endif
