/* net/tls_session.h - one TLS connection: what it holds, and its bytes between mbedTLS and the socket.
 *
 * mbedTLS never waits for the socket in writing: what it writes is collected, then sent at once, and
 * what the socket does not take stays here. So a flight of a handshake is one packet, no call has to
 * be made again with the same arguments, and reading never asks for writing. Private to net/tls_*. */
#ifndef NET_TLS_SESSION_H
#define NET_TLS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <mbedtls/ssl.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/tls.h"
#include "net/tls_fault.h"
#include "net/tls_pages.h"
#include "net/tls_side.h"
#include "net/tls_worker.h"

struct stream;

enum tls_state {
    TLS_SHAKING, /* the owner waits */
    TLS_OPEN,
    TLS_FAILED, /* `fault` says why */
};

#define TLS_INFO_NONE                                                                              \
    ((struct tls_info){                                                                            \
        .sni = "", .alpn = "", .peer_subject = "", .peer_serial = "", .peer_fingerprint = "" })

struct tls_session {
    struct stream      *stream;
    struct tls_side    *side;
    mbedtls_ssl_context ssl; /* set up when the first bytes come, for it takes 34 KB */
    struct tls_work     step;
    struct tls_pages    pages;

    enum tls_state state;
    bool           is_set_up : 1;
    bool           got_end : 1;   /* nothing more is to be read */
    bool           is_ending : 1; /* shut, but our last bytes are not sent yet */
    bool           resumed : 1;
    bool           saw_peer : 1; /* a certificate was looked at: client only */
    bool           is_pinned : 1;
    bool           is_offered : 1; /* the certificates for the name: server only */
    int            broken; /* an error of mbedTLS, to be told after the bytes before it; or 0 */

    struct buf raw; /* received and not taken by mbedTLS yet, from raw_at */
    size_t     raw_at;
    struct buf out; /* encrypted and not sent, from out_at */
    size_t     out_at;
    size_t     debt; /* text encrypted in `out` that its owner does not know as taken yet */

    char  *name; /* owned: the server's that we want, or the one that a client wants (SNI) */
    char  *key;  /* owned: for taking up sessions again; client only */
    size_t key_len;
    char  *peer; /* owned: the texts of info.peer_... */
    struct tls_info    info;
    struct tls_trouble fault;
};

/* NULL: no memory. EARLY is copied. */
struct tls_session *tls_session_new(struct stream *stream, struct tls_side *side,
                                    struct str early) MUST_CHECK;
void                tls_session_free(struct tls_session *session);

/* Around calls of mbedTLS that read or write; leaving sends what was written. */
void tls_session_enter(struct tls_session *session);
void tls_session_leave(struct tls_session *session);

static inline bool tls_session_is_sent(const struct tls_session *session)
{
    return session->out_at == session->out.len;
}

/* Within enter and leave: all that had come is with mbedTLS, and the socket was found empty. */
bool tls_session_is_drained(const struct tls_session *session);

/* Reads into `raw`, before mbedTLS reads at all. 0, or an error of mbedTLS, or that it wants to read. */
int tls_session_gather(struct tls_session *session);

/* Sends what is left over. */
void tls_session_flush(struct tls_session *session);

/* The connection has failed: by error RC of mbedTLS, or for what `fault` says already. */
void tls_session_fail(struct tls_session *session, int rc);

/* The session that SSL belongs to: for callbacks of mbedTLS. */
static inline struct tls_session *tls_session_of(mbedtls_ssl_context *ssl)
{
    return container_of(ssl, struct tls_session, ssl);
}

#endif
