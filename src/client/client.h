/* client/client.h - a worker's connections to other HTTP servers: opened, lent, kept and closed.
 *
 * A connection is lent for one call at a time (client/client_call.h), or, if it speaks HTTP/2, to as many as
 * the server allows, before another is opened. It is kept when the call leaves
 * it at rest, under a key that tells apart all that must not be mixed up: scheme, host and port, Unix
 * path, proxy, and with TLS the server's name, how it is verified, our certificate and ALPN. What lies
 * idle is watched: a byte or a FIN closes it. How many there are is bounded, in all and for each
 * key; who finds no place waits in one queue, first come, first served.
 *
 * Belongs to the worker, not to a generation of the app, and to its thread. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/client_conn.h"

struct dns;
struct err;
struct loop;
struct tls;
struct tls_clients;

/* Zeroes in OPTIONS (NULL is fine) are the defaults. TLS may be NULL: none is to be had then. */
int http_client_open(struct http_client **out, struct loop *loop, struct dns *dns, struct tls *tls,
                     const struct client_options *options, struct err *err);
/* Nobody may want or hold a connection any more. NULL is fine. */
void http_client_close(struct http_client *client);

/* How this worker verifies servers: for connections that are not kept here, too (client/client_tls.h). */
struct tls_clients *http_client_tls(const struct http_client *client);
/* Counts from the next connection on; what is open beyond stays until it is given back. */
void http_client_configure(struct http_client *client, const struct client_options *options);

struct http_client_stats http_client_stats(const struct http_client *client);

/* --- wanting one -----------------------------------------------------------------------------------*/

/* Zeroed memory with `done` set. TARGET's texts stay until done() or client_want_stop(). 1: there is a connection
 * at once; 0: done() will tell; -1: there is none, see `fault`. */
int client_want_start(struct client_want *want, struct http_client *client,
                      const struct client_target *target);
/* Gives up the place, the connecting, or the connection that was not taken out of `conn`. */
void client_want_stop(struct client_want *want);

#endif
