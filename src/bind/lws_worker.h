/* bind/lws_worker.h - what a worker lends for WebSockets: opened by bind/lend, used by bind/lws*. */
#ifndef BIND_LWS_WORKER_H
#define BIND_LWS_WORKER_H

#include <stdint.h>

struct bus_port;
struct err;
struct loop;
struct lws_worker;
struct vm;

int lws_worker_open(struct lws_worker **out, struct loop *loop, struct bus_port *port,
                    struct err *err);
/* No socket may be left; before the port. NULL is fine. */
void lws_worker_close(struct lws_worker *worker);

/* Closes the sockets of VM with CODE, some in each turn. Their handlers of `close` run; the VM has guests until
 * then. */
void lws_worker_end(struct lws_worker *worker, const struct vm *vm, unsigned code);

/* For metrics. */
struct lws_counts {
    uint64_t open;
    uint64_t received, sent; /* messages */
    uint64_t encoded;        /* frames made, whoever got them */
    uint64_t dropped;        /* of topics, since a buffer was full */
};
struct lws_counts lws_worker_counts(const struct lws_worker *worker);

#endif
