#include "net/tls_lib.h"

#include <pthread.h>
#include <string.h>

#include <mbedtls/ssl_ciphersuites.h>
#include <mbedtls/version.h>

#include "base/crypto_pk.h"

#define IS_3 (MBEDTLS_VERSION_NUMBER >= 0x03000000)

#if IS_3
#include <psa/crypto.h>
#endif

/* --- what is spoken ----------------------------------------------------------------------------- */

struct suite {
    int         id;
    const char *name;
};

#define SUITE(name)                                                                                \
    {                                                                                              \
        MBEDTLS_##name, #name                                                                      \
    }

/* The most wanted first. Both libraries give AES and GCM's products to the processor block by block, so that their
 * ChaCha20-Poly1305, which is plain C, is faster by half; and its time tells nothing on any processor. */
static const struct suite SUITES[] = {
#if IS_3
    { MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256" },
    { MBEDTLS_TLS1_3_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256" },
    { MBEDTLS_TLS1_3_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384" },
#endif
    SUITE(TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    SUITE(TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    SUITE(TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    SUITE(TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    SUITE(TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    SUITE(TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
};

/* mbedTLS keeps the pointers it is given, so these last for ever; the last 0 ends the list. */
static int            suite_ids[ARRAY_LEN(SUITES) + 1];
static pthread_once_t started = PTHREAD_ONCE_INIT;
static int            start_fault;

static void start(void)
{
    for (size_t i = 0; i < ARRAY_LEN(SUITES); i++)
        suite_ids[i] = SUITES[i].id;
#if IS_3
    start_fault = psa_crypto_init() == PSA_SUCCESS ? 0 : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
#endif
}

int tls_lib_start(void)
{
    pthread_once(&started, start);
    return start_fault;
}

/* A client's list of curves also says which keys it takes in certificates, where P-521 is rare but
 * proper; no server chooses it for the exchange while x25519 stands first. */
#if IS_3

static const uint16_t GROUPS[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519,
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
};

static const uint16_t CLIENT_GROUPS[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519,    MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1, MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
};

static const uint16_t SIGNATURES[] = {
    MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256, MBEDTLS_TLS1_3_SIG_ECDSA_SECP384R1_SHA384,
    MBEDTLS_TLS1_3_SIG_ECDSA_SECP521R1_SHA512, MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA256,
    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA384,    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA512,
    MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA256,       MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA384,
    MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA512,       MBEDTLS_TLS1_3_SIG_NONE,
};

static void configure_versions(mbedtls_ssl_config *conf, int endpoint)
{
    bool is_server = endpoint == MBEDTLS_SSL_IS_SERVER;

    mbedtls_ssl_conf_min_tls_version(conf, MBEDTLS_SSL_VERSION_TLS1_2);
    mbedtls_ssl_conf_max_tls_version(conf, MBEDTLS_SSL_VERSION_TLS1_3);
    mbedtls_ssl_conf_groups(conf, is_server ? GROUPS : CLIENT_GROUPS);
    mbedtls_ssl_conf_sig_algs(conf, SIGNATURES);
    mbedtls_ssl_conf_ciphersuites(conf, suite_ids);
    /* A ticket alone would do, but who steals it later could read what was said. */
    mbedtls_ssl_conf_tls13_key_exchange_modes(conf,
                                              MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL_ALL);
#ifdef MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED
    if (!is_server)
        mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
            conf, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
}

#else

static const mbedtls_ecp_group_id CURVES[] = {
    MBEDTLS_ECP_DP_CURVE25519,
    MBEDTLS_ECP_DP_SECP256R1,
    MBEDTLS_ECP_DP_SECP384R1,
    MBEDTLS_ECP_DP_NONE,
};

static const mbedtls_ecp_group_id CLIENT_CURVES[] = {
    MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1, MBEDTLS_ECP_DP_SECP384R1,
    MBEDTLS_ECP_DP_SECP521R1,  MBEDTLS_ECP_DP_NONE,
};

static const int SIGNATURE_HASHES[] = {
    MBEDTLS_MD_SHA256,
    MBEDTLS_MD_SHA384,
    MBEDTLS_MD_SHA512,
    MBEDTLS_MD_NONE,
};

static void configure_versions(mbedtls_ssl_config *conf, int endpoint)
{
    bool is_server = endpoint == MBEDTLS_SSL_IS_SERVER;

    mbedtls_ssl_conf_min_version(conf, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_max_version(conf, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_curves(conf, is_server ? CURVES : CLIENT_CURVES);
    mbedtls_ssl_conf_sig_hashes(conf, SIGNATURE_HASHES);
    mbedtls_ssl_conf_ciphersuites(conf, suite_ids);
}

#endif

int tls_lib_configure(mbedtls_ssl_config *conf, int endpoint)
{
    int rc = mbedtls_ssl_config_defaults(conf, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM,
                                         MBEDTLS_SSL_PRESET_DEFAULT);

    if (rc != 0)
        return rc;
    configure_versions(conf, endpoint);
    mbedtls_ssl_conf_renegotiation(conf, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
    mbedtls_ssl_conf_rng(conf, crypto_pk_random, NULL);
    return 0;
}

/* --- what was agreed on ---------------------------------------------------------------------------- */

const char *tls_lib_cipher(const mbedtls_ssl_context *ssl)
{
    const char *name = mbedtls_ssl_get_ciphersuite(ssl);
    int         id   = mbedtls_ssl_get_ciphersuite_id(name);

    for (size_t i = 0; i < ARRAY_LEN(SUITES); i++)
        if (SUITES[i].id == id)
            return SUITES[i].name;
    return name;
}

bool tls_lib_state_has_peer(void)
{
    return !IS_3;
}

int64_t tls_lib_session_start(const mbedtls_ssl_session *session)
{
    return (int64_t)session->MBEDTLS_PRIVATE(start);
}

#if IS_3

static bool is_behind_own_finished(const mbedtls_ssl_context *ssl)
{
    int state = ssl->MBEDTLS_PRIVATE(state);

    return state == MBEDTLS_SSL_CLIENT_CERTIFICATE || state == MBEDTLS_SSL_CLIENT_FINISHED;
}

void tls_lib_switch_keys(mbedtls_ssl_context *ssl, const mbedtls_ssl_config *conf)
{
    if (mbedtls_ssl_conf_get_endpoint(conf) != MBEDTLS_SSL_IS_SERVER ||
        ssl->MBEDTLS_PRIVATE(tls_version) != MBEDTLS_SSL_VERSION_TLS1_3 ||
        !is_behind_own_finished(ssl) || !ssl->MBEDTLS_PRIVATE(transform_application) ||
        ssl->MBEDTLS_PRIVATE(transform_out) == ssl->MBEDTLS_PRIVATE(transform_application))
        return;
    ssl->MBEDTLS_PRIVATE(transform_out) = ssl->MBEDTLS_PRIVATE(transform_application);
    memset(ssl->MBEDTLS_PRIVATE(cur_out_ctr), 0, sizeof(ssl->MBEDTLS_PRIVATE(cur_out_ctr)));
}

#else

void tls_lib_switch_keys(mbedtls_ssl_context *ssl, const mbedtls_ssl_config *conf)
{
}

#endif

/* RFC 5246, 7.4.6. In TLS 1.3 it has been sent. */
void tls_lib_alert(mbedtls_ssl_context *ssl, int rc)
{
    if (rc == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE &&
        strcmp(mbedtls_ssl_get_version(ssl), "TLSv1.2") == 0)
        mbedtls_ssl_send_alert_message(ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                       MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE);
}

enum tls_lib_verdict tls_lib_verdict(int rc)
{
    switch (rc) {
    case 0: return TLS_LIB_DONE;
    case MBEDTLS_ERR_SSL_WANT_READ: return TLS_LIB_AGAIN;
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY: return TLS_LIB_END;
    case MBEDTLS_ERR_SSL_CONN_EOF: return TLS_LIB_EOF;
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
    case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET: return TLS_LIB_TICKET;
#endif
    }
    return TLS_LIB_BROKEN;
}
