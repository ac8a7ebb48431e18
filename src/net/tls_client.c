/* Whom we trust, sessions that are taken up again, pins. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <mbedtls/platform_util.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/crypto.h"
#include "base/err.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/tls_cache.h"
#include "net/tls_cert.h"
#include "net/tls_lib.h"
#include "net/tls_peer.h"
#include "net/tls_session.h"
#include "net/tls_stream.h"

struct tls_client {
    struct tls_side  side; /* first: the two are one address */
    bool             trusts_all;
    bool             has_ca; /* of its own: `ca`; else the system's roots */
    mbedtls_x509_crt ca;
    struct tls_cert  own;
    struct tls_cache sessions;
    unsigned         pin_count;
    unsigned char    pins[TLS_PINS_MAX][TLS_PIN_BYTES];
};

static struct tls_client *client_of(struct tls_side *side)
{
    return container_of(side, struct tls_client, side);
}

/* --- whom we trust -------------------------------------------------------------------------------------- */

static const char *const BUNDLES[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt", /* Fedora */
    "/etc/ssl/ca-bundle.pem",           /* SUSE */
    "/etc/ssl/cert.pem",
};

/* Some of a bundle's may be of kinds that mbedTLS does not read: those are not trusted. */
static bool read_bundle(mbedtls_x509_crt *roots, const char *path)
{
    return mbedtls_x509_crt_parse_file(roots, path) >= 0 && roots->raw.len > 0;
}

static bool find_bundle(mbedtls_x509_crt *roots)
{
    const char *named = getenv("SSL_CERT_FILE");

    if (named && named[0])
        return read_bundle(roots, named);
    for (size_t i = 0; i < ARRAY_LEN(BUNDLES); i++)
        if (read_bundle(roots, BUNDLES[i]))
            return true;
    return false;
}

/* 140 certificates take some 5 ms, once a worker. */
static int need_roots(struct tls_client *client, struct err *err)
{
    struct tls *tls = client->side.tls;

    if (client->trusts_all || client->has_ca)
        return 0;
    if (!tls->has_roots) {
        tls->has_roots = find_bundle(&tls->roots);
        if (!tls->has_roots)
            return err_set(err, ERR_NOT_FOUND,
                           "there are no certificates of authorities to verify servers by: install "
                           "the package ca-certificates, or name a file in SSL_CERT_FILE");
    }
    mbedtls_ssl_conf_ca_chain(&client->side.conf, &tls->roots, NULL);
    return 0;
}

/* --- looking at the server's certificate ------------------------------------------------------------------ */

/* The bytes of NAME, if it is an address; else empty. TO holds 16. */
static struct str address_of(const char *name, unsigned char *to)
{
    if (inet_pton(AF_INET, name, to) == 1)
        return str_make((char *)to, 4);
    if (inet_pton(AF_INET6, name, to) == 1)
        return str_make((char *)to, 16);
    return STR_NONE;
}

static void digest_key(const mbedtls_x509_crt *cert, unsigned char *pin)
{
    crypto_digest(CRYPTO_SHA256, str_make((char *)cert->pk_raw.p, cert->pk_raw.len), pin);
}

static bool is_pinned(const struct tls_client *client, const mbedtls_x509_crt *cert)
{
    unsigned char pin[TLS_PIN_BYTES];

    if (client->pin_count == 0)
        return false;
    digest_key(cert, pin);
    for (unsigned i = 0; i < client->pin_count; i++)
        if (memcmp(client->pins[i], pin, sizeof(pin)) == 0)
            return true;
    return false;
}

/* mbedTLS knows no addresses, and "*.com" it takes for many. ADDRESS: what NAME is, or empty. */
static bool is_for(const mbedtls_x509_crt *cert, const char *name, struct str address)
{
    if (address.len)
        return tls_cert_is_for_address(cert, address);
    return tls_cert_match(cert, str_of(name)) != TLS_MATCH_NONE;
}

/* From the root down to the server's own. Where nothing is verified, only the last is proved to be the
 * server's. */
static int on_verify(void *arg, mbedtls_x509_crt *cert, int depth, uint32_t *flags)
{
    struct tls_session *session = arg;
    struct tls_client  *client  = client_of(session->side);
    unsigned char       bytes[16];
    struct str          address = address_of(session->name, bytes);

    session->saw_peer |= depth == 0;
    if (depth == 0 || !client->trusts_all)
        session->is_pinned |= is_pinned(client, cert);
    if (client->trusts_all) {
        *flags = 0;
        return 0;
    }
    if (depth == 0 && !is_for(cert, session->name, address))
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    tls_peer_doubt(session, cert, depth, *flags, session->name);
    return 0;
}

static void refuse_pin(struct tls_session *session)
{
    const mbedtls_x509_crt *cert = mbedtls_ssl_get_peer_cert(&session->ssl);
    unsigned char           pin[TLS_PIN_BYTES];
    struct buf              text;

    buf_init(&text, 64);
    if (cert) {
        digest_key(cert, pin);
        codec_base64(&text, str_make((char *)pin, sizeof(pin)), CODEC_BASE64);
    }
    tls_fault_set(&session->fault, TLS_UNTRUSTED,
                  "the key of %s is none of those that are pinned: it is sha256/%.*s",
                  session->name, (int)text.len, text.len ? text.at : "");
    buf_fini(&text);
}

/* --- taking up a session again ------------------------------------------------------------------------------ */

static struct str key_of(const struct tls_session *session)
{
    return str_make(session->key, session->key_len);
}

static void recall(struct tls_client *client, struct tls_session *session)
{
    struct str          state = tls_cache_get(&client->sessions, key_of(session));
    mbedtls_ssl_session known;
    int                 rc;

    if (!state.len)
        return;
    mbedtls_ssl_session_init(&known);
    rc = mbedtls_ssl_session_load(&known, (const unsigned char *)state.at, state.len);
    if (rc == 0)
        rc = mbedtls_ssl_set_session(&session->ssl, &known);
    mbedtls_ssl_session_free(&known);
    if (rc != 0)
        tls_cache_remove(&client->sessions, key_of(session));
}

/* `gather` is free: nothing is being written. */
static void remember(struct tls_side *side, struct tls_session *session)
{
    struct tls_client  *client = client_of(side);
    unsigned char      *text   = side->tls->gather;
    mbedtls_ssl_session known;
    size_t              len = 0;

    if (!session->key_len)
        return;
    mbedtls_ssl_session_init(&known);
    if (mbedtls_ssl_get_session(&session->ssl, &known) == 0 &&
        mbedtls_ssl_session_save(&known, text, TLS_RECORD_BYTES, &len) == 0)
        tls_cache_put(&client->sessions, key_of(session), str_make((char *)text, len));
    mbedtls_ssl_session_free(&known);
    mbedtls_platform_zeroize(text, len);
}

/* --- a connection's handshake ---------------------------------------------------------------------------------- */

/* To an address no name is told (RFC 6066, 3); on_verify() looks at it. */
static int prepare(struct tls_side *side, struct tls_session *session)
{
    unsigned char bytes[16];
    bool          is_address = address_of(session->name, bytes).len > 0;
    int           rc = mbedtls_ssl_set_hostname(&session->ssl, is_address ? NULL : session->name);

    if (rc != 0)
        return rc;
    mbedtls_ssl_set_verify(&session->ssl, on_verify, session);
    if (session->key_len)
        recall(client_of(side), session);
    return 0;
}

/* A session that is taken up again was accepted when it began. In TLS 1.3 tickets come later. */
static bool accept_server(struct tls_side *side, struct tls_session *session)
{
    struct tls_client *client = client_of(side);

    session->resumed = !session->saw_peer;
    if (client->pin_count && session->saw_peer && !session->is_pinned) {
        refuse_pin(session);
        return false;
    }
    if (strcmp(mbedtls_ssl_get_version(&session->ssl), "TLSv1.2") == 0)
        remember(side, session);
    return true;
}

/* --- life --------------------------------------------------------------------------------------------------- */

static void free_client(struct tls_side *side)
{
    struct tls_client *client = client_of(side);

    tls_side_fini(side);
    mbedtls_x509_crt_free(&client->ca);
    tls_cert_free(&client->own);
    tls_cache_fini(&client->sessions);
    free(client);
}

static const struct tls_side_ops client_ops = {
    .free     = free_client,
    .prepare  = prepare,
    .accept   = accept_server,
    .remember = remember,
};

static int copy_pins(struct tls_client *client, const struct tls_client_options *options,
                     struct err *err)
{
    if (options->pin_count > TLS_PINS_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than %d pins", TLS_PINS_MAX);
    client->pin_count = options->pin_count;
    if (options->pin_count)
        memcpy(client->pins, options->pins, options->pin_count * sizeof(client->pins[0]));
    return 0;
}

static int set_trust(struct tls_client *client, const struct tls_client_options *options,
                     struct err *err)
{
    int rc;

    client->trusts_all = options->trusts_all;
    mbedtls_ssl_conf_authmode(&client->side.conf, options->trusts_all
                                                      ? MBEDTLS_SSL_VERIFY_OPTIONAL
                                                      : MBEDTLS_SSL_VERIFY_REQUIRED);
    if (tls_pem_is_none(&options->ca))
        return 0;
    client->has_ca = true;
    rc = tls_cert_read_authorities(&client->ca, &options->ca, "file of authorities", err);
    mbedtls_ssl_conf_ca_chain(&client->side.conf, &client->ca, NULL);
    return rc;
}

static int set_own(struct tls_client *client, const struct tls_client_options *options,
                   struct err *err)
{
    int rc;

    if (tls_pem_is_none(&options->identity.cert))
        return 0;
    rc = tls_cert_read(&client->own, &options->identity, err);
    if (rc != 0)
        return rc;
    if (mbedtls_ssl_conf_own_cert(&client->side.conf, &client->own.chain, &client->own.key) != 0)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    return 0;
}

int tls_client_open(struct tls_client **out, struct tls *tls,
                    const struct tls_client_options *options, struct err *err)
{
    struct tls_client *client = calloc(1, sizeof(*client));
    int                rc;

    if (!client)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    mbedtls_x509_crt_init(&client->ca);
    tls_cert_init(&client->own);
    tls_cache_init(&client->sessions, options->sessions ? options->sessions : TLS_SESSIONS_MAX);
    rc = tls_side_init(&client->side, &client_ops, tls, MBEDTLS_SSL_IS_CLIENT, options->alpn, err);
    if (rc == 0)
        rc = set_trust(client, options, err);
    if (rc == 0)
        rc = set_own(client, options, err);
    if (rc == 0)
        rc = copy_pins(client, options, err);
    if (rc != 0)
        free_client(&client->side);
    else
        *out = client;
    return rc;
}

void tls_client_close(struct tls_client *client)
{
    if (client)
        tls_side_drop(&client->side);
}

/* --- connecting ------------------------------------------------------------------------------------------------ */

/* With a NUL behind it. */
static char *copy_text(struct str text)
{
    char *copy = malloc(text.len + 1);

    if (copy) {
        memcpy(copy, text.at, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

int tls_connect(struct stream *stream, struct tls_client *client, const struct tls_target *target,
                struct err *err)
{
    struct str          name = target->name;
    struct tls_session *session;
    int                 rc = need_roots(client, err);

    if (rc != 0)
        return rc;
    if (str_ends_with(name, STR(".")))
        name.len--;
    if (name.len == 0 || name.len > TLS_NAME_BYTES_MAX || memchr(name.at, '\0', name.len))
        return err_set(err, ERR_INVALID, "the name of the server is no name");
    session = tls_session_new(stream, &client->side, STR_NONE);
    if (!session)
        return err_set(err, ERR_MEMORY, "no memory for a TLS connection");
    session->name    = copy_text(name);
    session->key     = target->key.len ? copy_text(target->key) : NULL;
    session->key_len = session->key ? target->key.len : 0;
    if (!session->name) {
        tls_session_free(session);
        return err_set(err, ERR_MEMORY, "no memory for a TLS connection");
    }
    tls_stream_attach(session, true);
    return 0;
}
