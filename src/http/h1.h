/* http/h1.h - HTTP/1.0 and 1.1 on a connection: requests in order, one exchange at a time.
 *
 * Private to http/: conn_life.c calls it, and it makes exchanges (http/exchange.h) of what arrives. */
#ifndef HTTP_H1_H
#define HTTP_H1_H

#include "http/conn.h"
#include "http/h1_gate.h"

/* Reads, dispatches and writes as far as it goes. Frees nothing but exchanges. */
void h1_run(struct conn *conn);

/* The wire's own answer to what is no request; the connection closes behind it. */
void h1_refuse(struct conn *conn, const struct h1_fault *fault);

/* With an exchange open: what the connection waits for. */
enum conn_wait h1_waits_for(const struct conn *conn);

/* Time is up: half a head, a body that does not come on. */
void h1_head_is_late(struct conn *conn);
void h1_body_is_late(struct conn *conn);

/* The connection dies: its exchanges hear WHY. */
void h1_lost(struct conn *conn, enum gone_why why);

#endif
