/* server/worker_order.h - how a worker is asked for something, and how it answers: messages that
 * loops deliver. */
#ifndef SERVER_WORKER_ORDER_H
#define SERVER_WORKER_ORDER_H

#include "ev/inbox.h"
#include "net/addr.h"
#include "server/worker_shared.h"

struct worker_order {
    struct message message;
    struct worker *worker;
    void (*run)(struct worker *worker, const struct worker_order *order);
    int         fd;
    unsigned    number;
    void       *object;
    struct addr peer;
};

/* An order that is delivered in WORKER's thread, freed behind RUN, and dropped with the loop. Ends
 * the process where there is no memory: the worker would never hear of it. */
struct worker_order *worker_order_new(struct worker *worker,
                                      void (*run)(struct worker *, const struct worker_order *));
void                 worker_order_post(struct worker_order *order);

/* Any thread: runs RUN in the worker's, with FD and NUMBER in its order. */
void worker_order_send(struct worker *worker,
                       void (*run)(struct worker *, const struct worker_order *), int fd,
                       unsigned number);

/* The worker's thread: says KIND to the control thread. TEXT is copied, or NULL. */
void worker_order_report(struct worker *worker, enum worker_report_kind kind, unsigned version,
                         const char *text);

#endif
