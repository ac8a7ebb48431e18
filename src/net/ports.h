/* net/ports.h - listening sockets that an app asks for, shared by all workers and generations of
 * the process.
 *
 * Whoever asks for an address that is open already gets the same socket, so every worker may watch
 * it, and the socket of an app that is reloaded lasts as long as either generation has it: nobody
 * who connects meanwhile is refused. Any thread. */
#ifndef NET_PORTS_H
#define NET_PORTS_H

struct addr;
struct err;
struct port;
struct ports;

int ports_open(struct ports **out, struct err *err);
/* Also those of a worker that never came back to give them. Nobody may use them now. NULL is fine. */
void ports_close(struct ports *ports);

/* As listener_open(); port 0 is always a free one. The path in AT is copied. */
int ports_take(struct port **out, struct ports *ports, const struct addr *at, struct err *err);
/* The last one closes the socket, and removes a Unix socket's file. */
void ports_give(struct port *port);

int                port_fd(const struct port *port);   /* borrowed */
const struct addr *port_addr(const struct port *port); /* as it was bound */

#endif
