/* net/udp_ports.h - bound UDP sockets that an app asks for: for each address one for each worker,
 * which its generations share.
 *
 * The kernel spreads senders over the sockets of an address (SO_REUSEPORT), so the datagrams of one
 * sender all come to one worker; a socket that stays over a reload keeps it so, and loses none. Any
 * thread. */
#ifndef NET_UDP_PORTS_H
#define NET_UDP_PORTS_H

struct addr;
struct err;
struct udp_port;
struct udp_ports;

int udp_ports_open(struct udp_ports **out, struct err *err);
/* Also sockets that nobody came to give back. NULL is fine. */
void udp_ports_close(struct udp_ports *ports);

/* Worker SLOT's socket of AT; port 0 is always a free one. An address that another process has, or
 * that OWNER (a generation) has bound already, is ERR_IN_USE. */
int udp_ports_take(struct udp_port **out, struct udp_ports *ports, const struct addr *at,
                   unsigned slot, const void *owner, struct err *err);
/* The last one closes the socket. */
void udp_ports_give(struct udp_port *port, const void *owner);

int udp_port_fd(const struct udp_port *port); /* borrowed: to be duplicated */

#endif
