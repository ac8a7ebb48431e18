/* http/serve.h - the HTTP server of one worker: connections in, exchanges out.
 *
 * Accepted sockets are given to it, each complete request head goes to the dispatcher as an
 * exchange (http/exchange.h). All of it belongs to the loop's thread; nothing is shared between
 * workers. Knows no Lua. */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include <stdint.h>

#include "http/options.h"

struct addr;
struct http_server;
struct tls_server;

struct http_server *http_server_open(const struct http_server_options *options);

/* Takes FD, connected and non-blocking; it is closed if there is no place for it. PEER is copied. */
void http_server_accept(struct http_server *server, int fd, const struct addr *peer);

/* In place of options.tls, from the next connection on. */
void http_server_use_tls(struct http_server *server, struct tls_server *tls);

unsigned http_server_connections(const struct http_server *server); /* open now */
unsigned http_server_load(const struct http_server *server); /* these, and HTTP/2's open streams */
uint64_t http_server_requests(const struct http_server *server); /* heads read since the start */

/* No request is lost, none is kept alive any more: answers say close, idle connections get a FIN
 * and a second in which what they still send is read. Sockets may be given to it as before. */
void http_server_drain(struct http_server *server);

/* Cuts connections that have not come to their first request: their proxy has not said who they are, or
 * TLS is not agreed on. For the end of a drain, until which they may. */
void http_server_cut_handshakes(struct http_server *server);

/* Cuts what is open: exchanges hear on_gone(GONE_SHUTDOWN) from inside this call, so it is not for
 * an exchange's own callbacks. NULL is fine. */
void http_server_close(struct http_server *server);

#endif
