/* http/conn_tls.h - a connection that begins with a TLS handshake (net/tls.h).
 *
 * Private to http/: conn_life.c calls it while the state is CONN_HELLO or CONN_HANDSHAKE. */
#ifndef HTTP_CONN_TLS_H
#define HTTP_CONN_TLS_H

#include "http/conn.h"

/* How a connection begins once it is known whose it is. */
static inline enum conn_state conn_tls_first_state(const struct http_server *server)
{
    return server->options.tls ? CONN_HELLO : CONN_OPEN;
}

/* Goes on with the handshake. Over: what was agreed on is spoken, and the connection is OPEN. Failed:
 * so is the connection. Plain HTTP instead is answered with a 400 that says so. */
void conn_tls_run(struct conn *conn);
/* Its time is up. */
void conn_tls_is_late(struct conn *conn);

#endif
