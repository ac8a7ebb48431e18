/* server/worker_connections.h - where a worker's connections come from: the sockets it polls, the
 * neighbours that have too many, and what is done when a burst of them has gone. */
#ifndef SERVER_WORKER_CONNECTIONS_H
#define SERVER_WORKER_CONNECTIONS_H

struct worker_order;
struct worker;

void worker_connections_init(struct worker *worker);
/* The thread has ended. */
void worker_connections_stop(struct worker *worker);

/* Orders: to poll the socket order->fd of the door order->number, and to let it be. */
void worker_connections_listen(struct worker *worker, const struct worker_order *order);
void worker_connections_unlisten(struct worker *worker, const struct worker_order *order);

/* Accepts what waits in the queues, then nothing more (CORE, decision 20). */
void worker_connections_drain(struct worker *worker);

/* Says how many there are to those who pass connections on. */
void worker_connections_publish(struct worker *worker);
/* Called when idle: gives memory back when a burst is over. */
void worker_connections_watch(struct worker *worker);

#endif
