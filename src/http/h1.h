/* http/h1.h - HTTP/1.0 and 1.1 on a connection: requests in order, one exchange at a time.
 *
 * Private to http/: conn_life.c calls it, and it makes exchanges (http/exchange.h) of what arrives. */
#ifndef HTTP_H1_H
#define HTTP_H1_H

#include "http/conn.h"
#include "http/h1_gate.h"

extern const struct conn_protocol h1_protocol;

/* The wire's own answer to what is no request; the connection closes behind it. */
void h1_refuse(struct conn *conn, const struct h1_fault *fault);

#endif
