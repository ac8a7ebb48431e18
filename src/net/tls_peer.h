/* net/tls_peer.h - the peer's certificate: what is wrong with it, in plain words, and what the owner of a
 * stream may know of it. Private to net/tls_*. */
#ifndef NET_TLS_PEER_H
#define NET_TLS_PEER_H

#include <stdint.h>

#include <mbedtls/x509_crt.h>

struct tls_session;

/* FLAGS of mbedTLS' verification of CERT, which stands DEPTH above the peer's own, as the session's fault;
 * none if they are 0. NAME is the peer's, for the message. */
void tls_peer_doubt(struct tls_session *session, const mbedtls_x509_crt *cert, int depth,
                    uint32_t flags, const char *name);

/* Fills info.peer_... after the handshake. */
void tls_peer_learn(struct tls_session *session);

#endif
