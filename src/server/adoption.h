/* server/adoption.h - who polls the listener of a worker that is late (CORE, seam 7).
 *
 * The next worker that is not late itself does, until the slot is served again. An adopter that
 * becomes late gives up what it adopted to the next; where all are late, the first one that is
 * back takes what nobody polls. Belongs to the watchdog's thread. */
#ifndef SERVER_ADOPTION_H
#define SERVER_ADOPTION_H

#include <stdbool.h>

#include "server/config.h"

struct adoption_ops {
    void (*adopt)(unsigned worker, unsigned slot, void *arg);
    void (*give_back)(unsigned worker, unsigned slot, void *arg);
};

struct adoption {
    const struct adoption_ops *ops; /* borrowed */
    void                      *arg;
    unsigned                   worker_count;
    bool                       late[CONFIG_WORKERS_MAX];
    unsigned                   adopter[CONFIG_WORKERS_MAX]; /* by slot; its own: nobody else */
};

/* WORKER_COUNT is at most CONFIG_WORKERS_MAX. */
void adoption_init(struct adoption *adoption, unsigned worker_count, const struct adoption_ops *ops,
                   void *arg);
void adoption_late(struct adoption *adoption, unsigned worker);
void adoption_back(struct adoption *adoption, unsigned worker);

#endif
