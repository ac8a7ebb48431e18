/* http/conn_proxy.h - a connection of a proxy that says first who the client is (net/proxy_header.h).
 *
 * Private to http/: conn_life.c calls it while the state is CONN_PROXIED. */
#ifndef HTTP_CONN_PROXY_H
#define HTTP_CONN_PROXY_H

struct conn;

/* Reads the header. Whole: the connection has the client's address, and begins. Bad: it is failed,
 * and no answer is given, since nobody knows to whom. */
void conn_proxy_run(struct conn *conn);
/* Its time is up. */
void conn_proxy_is_late(struct conn *conn);

#endif
