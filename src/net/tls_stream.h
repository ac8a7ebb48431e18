/* net/tls_stream.h - a session as the ops of a stream. Private to net/tls_*. */
#ifndef NET_TLS_STREAM_H
#define NET_TLS_STREAM_H

#include <stdbool.h>

struct tls_session;

/* Puts SESSION between its stream and the socket. STARTS: we have the first word, or it has come
 * already; else the handshake begins when bytes come. */
void tls_stream_attach(struct tls_session *session, bool starts);

#endif
