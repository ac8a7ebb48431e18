/* Certificates by name, tickets, certificates of clients. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mbedtls/platform_util.h>

#include "base/crypto.h"
#include "base/err.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/tls_cert.h"
#include "net/tls_hello.h"
#include "net/tls_lib.h"
#include "net/tls_peer.h"
#include "net/tls_session.h"
#include "net/tls_stream.h"
#include "net/tls_ticket.h"

enum { POLICY_BYTES = 32 };

struct tls_server {
    struct tls_side         side; /* first: the two are one address */
    struct tls_cert        *certs;
    unsigned                cert_count;
    struct tls_ticket_keys *tickets; /* borrowed */
    mbedtls_x509_crt        client_ca;
    enum tls_client_certs   client_certs;
    char policy[POLICY_BYTES]; /* whom we let in, as a digest: tickets are bound to it */
};

static struct tls_server *server_of(struct tls_side *side)
{
    return container_of(side, struct tls_server, side);
}

/* --- certificates by name ------------------------------------------------------------------------------ */

static enum tls_match best_match(const struct tls_server *server, struct str name)
{
    enum tls_match best = TLS_MATCH_NONE;

    for (unsigned i = 0; i < server->cert_count; i++) {
        enum tls_match found = tls_cert_match(&server->certs[i].chain, name);

        best = found > best ? found : best;
    }
    return best;
}

/* BEST is the best match for NAME among all; none: the first certificate, as without a name. Several may
 * be for one name, with keys of different kinds. */
static bool is_for(const struct tls_server *server, unsigned i, struct str name,
                   enum tls_match best)
{
    const mbedtls_x509_crt *cert = &server->certs[i].chain;

    if (best != TLS_MATCH_NONE)
        return tls_cert_match(cert, name) == best;
    return i == 0 ||
           tls_cert_match(cert, tls_cert_name(&server->certs[0].chain)) == TLS_MATCH_EXACT;
}

static int offer(struct tls_server *server, mbedtls_ssl_context *ssl, struct str name)
{
    enum tls_match best = best_match(server, name);
    int            rc   = 0;

    if (best == TLS_MATCH_NONE)
        return 0;
    for (unsigned i = 0; i < server->cert_count && rc == 0; i++)
        if (is_for(server, i, name, best))
            rc = mbedtls_ssl_set_hs_own_cert(ssl, &server->certs[i].chain, &server->certs[i].key);
    return rc;
}

/* mbedTLS tells of it where it stands; we know it already, and a second one is not heard. */
static int on_name(void *arg, mbedtls_ssl_context *ssl, const unsigned char *bytes, size_t len)
{
    struct tls_session *session = tls_session_of(ssl);

    if (!session->name || session->is_offered)
        return 0;
    session->is_offered = true;
    return offer(arg, ssl, str_of(session->name));
}

/* The first one, and what has another kind of key for its name. */
static int set_default(struct tls_server *server)
{
    int rc = 0;

    for (unsigned i = 0; i < server->cert_count && rc == 0; i++)
        if (is_for(server, i, STR_NONE, TLS_MATCH_NONE))
            rc = mbedtls_ssl_conf_own_cert(&server->side.conf, &server->certs[i].chain,
                                           &server->certs[i].key);
    return rc;
}

/* --- what a client begins with ---------------------------------------------------------------------------- */

/* As a host's name may be written; else it is nobody's. */
static bool copy_name(char *to, struct str name)
{
    if (name.len > 1 && name.at[name.len - 1] == '.')
        name.len--;
    if (name.len == 0 || name.len > TLS_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char byte = (unsigned char)name.at[i];

        if (!isalnum(byte) && !memchr("-._", byte, 3))
            return false;
        to[i] = (char)tolower(byte);
    }
    to[name.len] = '\0';
    return true;
}

static int learn_name(struct tls_session *session)
{
    char name[TLS_NAME_BYTES_MAX + 1];

    if (!copy_name(name, tls_hello_name(buf_str(&session->raw))))
        return 0;
    session->name = strdup(name);
    return session->name ? 0 : MBEDTLS_ERR_SSL_ALLOC_FAILED;
}

/* All of the first message, before it costs 34 KB and a millisecond. Who has left meanwhile, as many
 * have in a storm, does not get that far. */
static int wait_for_hello(struct tls_side *side, struct tls_session *session)
{
    enum tls_hello hello = tls_hello_look(buf_str(&session->raw));

    while (hello == TLS_HELLO_MORE) {
        int rc = tls_session_gather(session);

        if (rc != 0)
            return rc;
        hello = tls_hello_look(buf_str(&session->raw));
    }
    if (session->stream->saw_fin || session->stream->error)
        return MBEDTLS_ERR_SSL_CONN_EOF;
    if (hello == TLS_HELLO_OTHER)
        return 0;
    tls_hello_join(&session->raw);
    return learn_name(session);
}

/* --- tickets --------------------------------------------------------------------------------------------- */

/* What a ticket is good for. */
struct terms {
    char bytes[POLICY_BYTES + 1 + TLS_NAME_BYTES_MAX];
};

/* Of the certificates for NAME. */
static unsigned kinds_of_keys(const struct tls_server *server, struct str name)
{
    enum tls_match best  = best_match(server, name);
    unsigned       kinds = 0;

    for (unsigned i = 0; i < server->cert_count; i++)
        if (is_for(server, i, name, best))
            kinds |= 1u << mbedtls_pk_get_type(&server->certs[i].key);
    return kinds;
}

/* Whom we let in, the name that was asked for (RFC 6066, 3), and the kinds of keys: mbedTLS chooses a
 * cipher by them also for a session that has one, and clients break off then. */
static struct str terms_of(const struct tls_server *server, const struct tls_session *session,
                           struct terms *terms)
{
    struct str name = session->name ? str_of(session->name) : STR_NONE;

    memcpy(terms->bytes, server->policy, POLICY_BYTES);
    terms->bytes[POLICY_BYTES] = (char)kinds_of_keys(server, name);
    memcpy(terms->bytes + POLICY_BYTES + 1, name.len ? name.at : "", name.len);
    return str_make(terms->bytes, POLICY_BYTES + 1 + name.len);
}

/* `gather` is free while a handshake goes on. */
static int on_ticket_write(void *arg, const mbedtls_ssl_session *state, unsigned char *to,
                           const unsigned char *end, size_t *len, uint32_t *lifetime)
{
    struct tls_server *server = arg;
    unsigned char     *text   = server->side.tls->gather;
    struct terms       terms;
    size_t             text_len;
    int                rc = mbedtls_ssl_session_save(state, text, TLS_RECORD_BYTES, &text_len);

    if (rc != 0)
        return rc;
    if (text_len + TLS_TICKET_ADDED_BYTES > (size_t)(end - to)) {
        rc = MBEDTLS_ERR_SSL_BUFFER_TOO_SMALL;
    } else {
        rc        = tls_ticket_seal(server->tickets, str_make((char *)text, text_len),
                                    terms_of(server, server->side.tls->running, &terms), to) == 0
                        ? 0
                        : MBEDTLS_ERR_SSL_ALLOC_FAILED;
        *len      = text_len + TLS_TICKET_ADDED_BYTES;
        *lifetime = tls_ticket_lifetime(server->tickets);
    }
    mbedtls_platform_zeroize(text, text_len);
    return rc;
}

/* A session is taken up again until its lifetime after the full handshake, however often. */
static bool is_too_old(const struct tls_server *server, const mbedtls_ssl_session *state)
{
    int64_t start = tls_lib_session_start(state);
    int64_t age   = (int64_t)time(NULL) - start;

    return start != 0 && (age < 0 || age > tls_ticket_lifetime(server->tickets));
}

static int on_ticket_read(void *arg, mbedtls_ssl_session *state, unsigned char *ticket, size_t len)
{
    struct tls_server *server = arg;
    unsigned char     *text   = server->side.tls->gather;
    struct str         sealed = str_make((char *)ticket, len);
    struct terms       terms;
    size_t             text_len;
    int                rc;

    if (len > TLS_RECORD_BYTES ||
        tls_ticket_open(server->tickets, sealed,
                        terms_of(server, server->side.tls->running, &terms), text, &text_len) != 0)
        return MBEDTLS_ERR_SSL_INVALID_MAC;
    rc = mbedtls_ssl_session_load(state, text, text_len);
    mbedtls_platform_zeroize(text, text_len);
    if (rc == 0 && is_too_old(server, state))
        rc = MBEDTLS_ERR_SSL_SESSION_TICKET_EXPIRED;
    if (rc == 0)
        server->side.tls->running->resumed = true;
    return rc;
}

/* --- certificates of clients -------------------------------------------------------------------------------- */

/* mbedTLS lets a bad certificate pass where none is required; we do not. */
static int on_verify(void *arg, mbedtls_x509_crt *cert, int depth, uint32_t *flags)
{
    struct tls_session *session = arg;
    struct tls_server  *server  = server_of(session->side);

    tls_peer_doubt(session, cert, depth, *flags, "the client");
    return *flags && server->client_certs == TLS_CLIENT_CERTS_OPTIONAL
               ? MBEDTLS_ERR_X509_CERT_VERIFY_FAILED
               : 0;
}

static int prepare(struct tls_side *side, struct tls_session *session)
{
    mbedtls_ssl_set_verify(&session->ssl, on_verify, session);
    return 0;
}

static bool accept_client(struct tls_side *side, struct tls_session *session)
{
    if (session->name)
        session->info.sni = session->name;
    if (!mbedtls_ssl_get_peer_cert(&session->ssl) ||
        mbedtls_ssl_get_verify_result(&session->ssl) == 0)
        return true;
    tls_fault_set(&session->fault, TLS_UNTRUSTED,
                  "the certificate of the client is not meant for this use");
    return false;
}

static int ask_clients(struct tls_server *server, const struct tls_server_options *options,
                       struct err *err)
{
    int rc;

    server->client_certs = options->client_certs;
    if (options->client_certs == TLS_CLIENT_CERTS_NONE) {
        mbedtls_ssl_conf_authmode(&server->side.conf, MBEDTLS_SSL_VERIFY_NONE);
        return 0;
    }
    if (tls_pem_is_none(&options->client_ca))
        return err_set(err, ERR_INVALID,
                       "certificates of clients are asked for, but not who signs them");
    rc = tls_cert_read_authorities(&server->client_ca, &options->client_ca,
                                   "file of the clients' authorities", err);
    if (rc != 0)
        return rc;
    mbedtls_ssl_conf_authmode(&server->side.conf, options->client_certs == TLS_CLIENT_CERTS_REQUIRED
                                                      ? MBEDTLS_SSL_VERIFY_REQUIRED
                                                      : MBEDTLS_SSL_VERIFY_OPTIONAL);
    mbedtls_ssl_conf_ca_chain(&server->side.conf, &server->client_ca, NULL);
    return 0;
}

/* Else a ticket from where nobody is asked would open where one must be. */
static int digest_policy(struct tls_server *server, struct err *err)
{
    struct buf text;
    bool       failed;

    buf_init(&text, TLS_PEM_BYTES_MAX);
    buf_add_byte(&text, (char)('0' + server->client_certs));
    if (server->client_certs != TLS_CLIENT_CERTS_NONE)
        for (const mbedtls_x509_crt *ca = &server->client_ca; ca; ca = ca->next)
            buf_add(&text, ca->raw.p, ca->raw.len);
    crypto_digest(CRYPTO_SHA256, buf_str(&text), server->policy);
    failed = text.failed;
    buf_fini(&text);
    return failed ? err_set(err, ERR_MEMORY, "no memory for TLS") : 0;
}

/* Who has shown who they are must not come back as nobody. */
static bool may_resume(const struct tls_server *server)
{
    return server->client_certs == TLS_CLIENT_CERTS_NONE || tls_lib_state_has_peer();
}

/* --- life -------------------------------------------------------------------------------------------------- */

static void free_server(struct tls_side *side)
{
    struct tls_server *server = server_of(side);

    tls_side_fini(side);
    for (unsigned i = 0; i < server->cert_count; i++)
        tls_cert_free(&server->certs[i]);
    free(server->certs);
    mbedtls_x509_crt_free(&server->client_ca);
    free(server);
}

static const struct tls_side_ops server_ops = {
    .free    = free_server,
    .wait    = wait_for_hello,
    .prepare = prepare,
    .accept  = accept_client,
};

static int read_certs(struct tls_server *server, const struct tls_server_options *options,
                      struct err *err)
{
    int rc = 0;

    if (options->identity_count == 0)
        return err_set(err, ERR_INVALID, "TLS needs a certificate and its private key");
    if (options->identity_count > TLS_IDENTITIES_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than %d certificates", TLS_IDENTITIES_MAX);
    server->certs = calloc(options->identity_count, sizeof(*server->certs));
    if (!server->certs)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    for (unsigned i = 0; i < options->identity_count && rc == 0; i++) {
        tls_cert_init(&server->certs[i]);
        server->cert_count++;
        rc = tls_cert_read(&server->certs[i], &options->identities[i], err);
    }
    return rc;
}

static int configure(struct tls_server *server, const struct tls_server_options *options,
                     struct err *err)
{
    mbedtls_ssl_config *conf = &server->side.conf;
    int                 rc   = read_certs(server, options, err);

    if (rc == 0)
        rc = ask_clients(server, options, err);
    if (rc == 0)
        rc = digest_policy(server, err);
    if (rc != 0)
        return rc;
    if (set_default(server) != 0)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    mbedtls_ssl_conf_sni(conf, on_name, server);
    if (may_resume(server))
        server->tickets = options->tickets;
    if (server->tickets)
        mbedtls_ssl_conf_session_tickets_cb(conf, on_ticket_write, on_ticket_read, server);
    return 0;
}

int tls_server_open(struct tls_server **out, struct tls *tls,
                    const struct tls_server_options *options, struct err *err)
{
    struct tls_server *server = calloc(1, sizeof(*server));
    int                rc;

    if (!server)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    mbedtls_x509_crt_init(&server->client_ca);
    rc = tls_side_init(&server->side, &server_ops, tls, MBEDTLS_SSL_IS_SERVER, options->alpn, err);
    if (rc == 0)
        rc = configure(server, options, err);
    if (rc != 0)
        free_server(&server->side);
    else
        *out = server;
    return rc;
}

void tls_server_close(struct tls_server *server)
{
    if (server)
        tls_side_drop(&server->side);
}

int tls_server_check(const struct tls_server_options *options, struct err *warning, struct err *err)
{
    struct tls_server *server;
    int                rc;

    if (warning)
        *warning = (struct err){ .code = ERR_NONE };
    if (tls_lib_start() != 0)
        return err_set(err, ERR_SYSTEM, "mbedTLS does not start: its cryptography has failed");
    rc = tls_server_open(&server, NULL, options, err);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; warning && i < server->cert_count; i++)
        tls_cert_warn(&server->certs[i], &options->identities[i], warning);
    tls_server_close(server);
    return 0;
}

int tls_accept(struct stream *stream, struct tls_server *server, struct str early)
{
    struct tls_session *session = tls_session_new(stream, &server->side, early);

    if (!session)
        return ERR_MEMORY;
    tls_stream_attach(session, false);
    return 0;
}
