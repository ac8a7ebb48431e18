/* net/tls.h - TLS behind net/stream, by mbedTLS (2.28: TLS 1.2; 3.6: TLS 1.3 too), both sides.
 *
 * A stream starts plain. tls_accept() or tls_connect() turns it into TLS before its first byte; from
 * then on the same calls: stream_read() is WAIT until the handshake is over, and bytes after it;
 * on_event() comes when it is over. It fails as STREAM_FAIL, and tls_fault() says why in plain words.
 * Time limits are the owner's: a handshake that takes for ever is a stream that says WAIT.
 *
 * What is spoken: TLS 1.2 and 1.3. Key exchange by x25519, P-256, P-384 in this order. AEAD alone:
 *     TLS 1.3   ChaCha20-Poly1305, AES-128-GCM, AES-256-GCM; the client's order counts
 *     TLS 1.2   ECDHE with ECDSA or RSA and ChaCha20-Poly1305, then AES-128-GCM, then AES-256-GCM; this
 *               order, which is the server's, counts
 * Signatures with SHA-256, 384, 512. No renegotiation, no compression, no early data.
 *
 * All of it belongs to the worker and its thread, but for tls_ticket_keys. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct err;
struct loop;
struct stream;
struct tls;
struct tls_client;
struct tls_server;
struct tls_ticket_keys;

enum {
    TLS_STEPS_PER_TURN  = 4,    /* of handshakes, half a millisecond or more each: then others */
    TLS_DROP_MS         = 1000, /* idle that long: pages inside the record buffers go back */
    TLS_IDENTITIES_MAX  = 256,
    TLS_ALPN_MAX        = 8,
    TLS_PEM_BYTES_MAX   = 1024 * 1024,
    TLS_PIN_BYTES       = 32,
    TLS_PINS_MAX        = 32,
    TLS_SESSIONS_MAX    = 256,       /* that a client remembers, by default */
    TLS_TICKET_LIFETIME = 24 * 3600, /* seconds, by default */
};

/* --- what the TLS connections of a worker share: buffers, the queue of handshakes, the roots ------- */

int tls_open(struct tls **out, struct loop *loop, struct err *err) MUST_CHECK;
/* After all its servers, clients and streams. NULL is fine. */
void tls_close(struct tls *tls);

/* Texts in PEM: a file, or, if PATH is NULL, TEXT. Both empty: none. Borrowed for the call. */
struct tls_pem {
    const char *path;
    struct str  text;
};

/* What is PEM by itself, or else its path, which ends with NUL. Empty: none. */
struct tls_pem tls_pem_of(struct str text_or_path);

/* A certificate, followed by those that lead to a root, and its private key without a password. If KEY
 * is none, it stands beside the certificate. */
struct tls_identity {
    struct tls_pem cert;
    struct tls_pem key;
};

/* --- session tickets: keys of all workers, any thread ----------------------------------------------- */

/* A client that comes back with a ticket spares both sides most of the handshake. Keys exist in memory
 * alone, are replaced after half the lifetime (0: TLS_TICKET_LIFETIME), and open tickets for one
 * lifetime. NULL: no memory. Where certificates of clients are asked for, mbedTLS 3.6 gets none: its
 * tickets would forget who the client is. */
struct tls_ticket_keys *tls_ticket_keys_new(uint32_t lifetime_s);
void                    tls_ticket_keys_free(struct tls_ticket_keys *keys); /* NULL is fine */
/* Now, and not when it is due. A key opens tickets until it has been replaced three times. */
void tls_ticket_keys_rotate(struct tls_ticket_keys *keys);

/* NAMES that end with NUL each, as the options `alpn` want them; LIST borrows them. NULL: there are none. What is
 * beyond TLS_ALPN_MAX is left out. */
const char *const *tls_alpn_list(struct str names, const char *list[TLS_ALPN_MAX + 1]);

/* --- server ----------------------------------------------------------------------------------------- */

enum tls_client_certs {
    TLS_CLIENT_CERTS_NONE,
    TLS_CLIENT_CERTS_OPTIONAL, /* asked for; one that is sent must be good */
    TLS_CLIENT_CERTS_REQUIRED,
};

struct tls_server_options {
    /* At least one. Chosen by the name that the client asks for, exact names before wildcards; the first
     * is for all others. Several for one name with keys of different kinds: the client's choice. */
    const struct tls_identity *identities;
    unsigned                   identity_count;

    const char *const *alpn; /* most wanted first, ends with NULL; NULL: none. Copied */
    struct tls_ticket_keys
        *tickets; /* borrowed until the last session has gone; NULL: no tickets */

    enum tls_client_certs client_certs;
    struct tls_pem        client_ca; /* who signs them; needed unless NONE */
};

/* Reads the files. 0, or an error that names the file and the way out. */
int tls_server_open(struct tls_server **out, struct tls *tls,
                    const struct tls_server_options *options, struct err *err) MUST_CHECK;
/* Its connections keep it alive: others may take its place at any time. NULL is fine. */
void tls_server_close(struct tls_server *server);

/* Whether tls_server_open() would do it. Any thread. What a person should hear all the same goes to
 * WARNING (NULL is fine): a certificate that has expired or soon will; "" if nothing. */
int tls_server_check(const struct tls_server_options *options, struct err *warning,
                     struct err *err) MUST_CHECK;

/* EARLY: what was read of the client already, behind a PROXY header. 0, or ERR_MEMORY: the stream is
 * plain still. */
int tls_accept(struct stream *stream, struct tls_server *server, struct str early) MUST_CHECK;

/* --- client ----------------------------------------------------------------------------------------- */

struct tls_client_options {
    bool           trusts_all; /* no certificate is looked at, but for pins */
    struct tls_pem ca; /* instead of the system's roots (SSL_CERT_FILE, or the distribution's) */
    struct tls_identity identity; /* our own certificate, or none */
    const char *const  *alpn;     /* as of the server */

    /* SHA-256 of SubjectPublicKeyInfo: one of the server's key, or of an authority it was verified by. */
    const uint8_t (*pins)[TLS_PIN_BYTES];
    unsigned pin_count;
    unsigned sessions; /* to be remembered; 0: TLS_SESSIONS_MAX */
};

/* The system's roots are read once a worker, when the first connection needs them. */
int  tls_client_open(struct tls_client **out, struct tls *tls,
                     const struct tls_client_options *options, struct err *err) MUST_CHECK;
void tls_client_close(struct tls_client *client); /* as of a server */

struct tls_target {
    struct str name; /* a host's name or its address: what the certificate must be for */
    struct str key;  /* sessions are taken up again under the same key; empty: never */
};

/* 0, or an error: ERR_MEMORY, ERR_NOT_FOUND (no roots), ERR_INVALID (no name); the stream is plain still. */
int tls_connect(struct stream *stream, struct tls_client *client, const struct tls_target *target,
                struct err *err) MUST_CHECK;

/* --- what is known of a stream ------------------------------------------------------------------------ */

struct tls_info {
    const char *version; /* "TLSv1.2" */
    const char *cipher;  /* "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" */
    const char *sni;     /* lower case; "" if the client named none. Server only */
    const char *alpn;    /* "h2", "http/1.1"; "" if none was agreed on */
    bool        resumed; /* without a full handshake */

    /* The peer's certificate: for a server, one that has been verified. "" without one. */
    const char *peer_subject;     /* "CN=alice, O=Example" */
    const char *peer_serial;      /* "01:A3:..." */
    const char *peer_fingerprint; /* SHA-256, 64 hexadecimal digits */
};

/* NULL for a plain stream or before the end of the handshake. Lives as long as the stream. */
const struct tls_info *tls_info(const struct stream *stream);

enum tls_failure {
    TLS_WELL,
    TLS_BROKEN,    /* what came was no proper TLS, or there is no version or cipher in common */
    TLS_UNTRUSTED, /* we do not accept the peer's certificate */
    TLS_REFUSED,   /* the peer has broken it off with an alert */
    TLS_LEFT,      /* the connection ended in the middle of the handshake */
};

/* Why TLS has failed, on one line; "" while it has not, and for a plain stream. */
const char      *tls_fault(const struct stream *stream);
enum tls_failure tls_fault_kind(const struct stream *stream);

#endif
