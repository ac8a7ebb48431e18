/* net/tls_lib.h - mbedTLS 2.28 and 3.6: what differs between them, and what we let them speak. */
#ifndef NET_TLS_LIB_H
#define NET_TLS_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mbedtls/ssl.h>

#include "base/compiler.h"

/* 3.6 has put a name around what it keeps to itself; 2.28 has not. */
#ifndef MBEDTLS_PRIVATE
#define MBEDTLS_PRIVATE(member) member
#endif

/* Once a process, before all else; any thread. 0, or an error of mbedTLS. */
int tls_lib_start(void) MUST_CHECK;

/* Versions, cipher suites, curves, signatures as net/tls.h has them. ENDPOINT is mbedTLS'. */
int tls_lib_configure(mbedtls_ssl_config *conf, int endpoint);

/* "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"; mbedTLS' own name for what we do not know. */
const char *tls_lib_cipher(const mbedtls_ssl_context *ssl);

/* Whether the state of a session, and so a ticket, holds the peer's certificate. In 3.6 that of TLS 1.3 does
 * not. */
bool tls_lib_state_has_peer(void);

/* When the keys of a session were agreed on, in seconds since 1970; 0 if it does not say. */
int64_t tls_lib_session_start(const mbedtls_ssl_session *session);

/* To be called when a handshake waits for the client. In TLS 1.3 all that a server sends behind its
 * Finished goes by the keys of the application, but 3.6 takes these only when the client's Finished has
 * come: an alert before that, about the client's certificate, could not be read. */
void tls_lib_switch_keys(mbedtls_ssl_context *ssl, const mbedtls_ssl_config *conf);

/* After a handshake has failed by RC: sends the alert that mbedTLS leaves out. */
void tls_lib_alert(mbedtls_ssl_context *ssl, int rc);

enum tls_lib_verdict {
    TLS_LIB_DONE,   /* 0 */
    TLS_LIB_AGAIN,  /* more bytes are wanted */
    TLS_LIB_TICKET, /* TLS 1.3: a session's ticket has come; call again */
    TLS_LIB_END,    /* the peer has said that it sends no more */
    TLS_LIB_EOF,    /* no more bytes, without its saying so */
    TLS_LIB_BROKEN,
};

/* What a call of mbedtls_ssl_...() that returned RC, which is 0 or less, has met. */
enum tls_lib_verdict tls_lib_verdict(int rc);

#endif
