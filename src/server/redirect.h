/* server/redirect.h - the second port of a server that speaks HTTPS: it speaks plain HTTP and leads
 * whoever comes there to the https URL of the same host and path.
 *
 * An HTTP server of its own for each worker, with narrower limits, whose answers need no Lua. One
 * path is the app's there too: below /.well-known/acme-challenge/ certificate authorities ask, over
 * plain HTTP, whether a name is ours (RFC 8555, 8.3). */
#ifndef SERVER_REDIRECT_H
#define SERVER_REDIRECT_H

#include "http/options.h"

struct http_server;
struct redirect;

/* Made of the app's OPTIONS; what is not redirected goes to their dispatcher. PORT is the one of
 * HTTPS. */
struct redirect *redirect_open(const struct http_server_options *options, unsigned port);
/* Cuts what is open. NULL is fine. */
void redirect_close(struct redirect *redirect);

struct http_server *redirect_server(const struct redirect *redirect);

#endif
