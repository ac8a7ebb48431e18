/* http/h2.h - HTTP/2 on a connection (RFC 9113): many exchanges at a time, each a stream.
 *
 * Private to http/: h1.c calls it when a connection begins with HTTP/2's preface, TLS when ALPN says
 * so, conn_life.c lets it work. */
#ifndef HTTP_H2_H
#define HTTP_H2_H

#include "http/conn.h"

extern const struct conn_protocol h2_protocol;

#define H2_PREFACE STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

/* From here on CONN speaks HTTP/2, beginning with the client's preface, which is not consumed. */
void h2_begin(struct conn *conn);

/* What the connections of SERVER shared. NULL is fine. */
void h2_free_shared(struct h2_shared *shared);

#endif
