/* http/conn_life.h - a connection's life: opened, run again and again, ended.
 *
 * conn_run() is the one place where a connection moves: it reads, lets the protocol work, writes,
 * and sets the one time limit that fits what is waited for. */
#ifndef HTTP_CONN_LIFE_H
#define HTTP_CONN_LIFE_H

#include "http/exchange.h"

struct addr;
struct conn;
struct http_server;
struct limit;
struct timer;

/* Takes FD. NULL: it could not be registered; FD is closed. */
struct conn *conn_new(struct http_server *server, int fd, const struct addr *peer);
/* Cuts it off: exchanges hear WHY. */
void conn_free(struct conn *conn, enum gone_why why);

/* Does all that can be done now. May free the connection. */
void conn_run(struct conn *conn);

/* For the server's queues and its timer: a limit has ended, the next turn has come. */
void conn_on_limit(struct limit *limit);
void conn_on_next_turn(struct timer *timer);

#endif
