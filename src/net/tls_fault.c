#include "net/tls_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <mbedtls/error.h>
#include <mbedtls/version.h>

#include "net/tls_lib.h"

#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#define ERR_NO_CIPHER                      MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE
#define ERR_BAD_VERSION                    MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION
#define ERR_NO_ALPN                        MBEDTLS_ERR_SSL_NO_APPLICATION_PROTOCOL
#define MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE MBEDTLS_ERR_SSL_BAD_CERTIFICATE
#else
#define ERR_NO_CIPHER   MBEDTLS_ERR_SSL_NO_CIPHER_CHOSEN
#define ERR_BAD_VERSION MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION
#define ERR_NO_ALPN     MBEDTLS_ERR_SSL_BAD_HS_CLIENT_HELLO
#endif

#define UNFIT "the certificate is broken, or its key is not meant for this"

struct words {
    int         number;
    const char *text;
};

/* RFC 8446, 6.2. */
static const struct words ALERTS[] = {
    { MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE, "unexpected message" },
    { MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC, "a record was changed on its way" },
    /* OpenSSL says so too to who shows no certificate, in TLS 1.2. */
    { MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE,
      "no cipher or curve in common, or a certificate of ours is missing" },
    { MBEDTLS_SSL_ALERT_MSG_NO_CERT, "it wants a certificate of ours" },
    { MBEDTLS_SSL_ALERT_MSG_BAD_CERT, "it finds our certificate broken" },
    { MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT, "it does not know our certificate's kind" },
    { MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED, "our certificate has been revoked" },
    { MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED, "our certificate has expired" },
    { MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN, "it does not accept our certificate" },
    { MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA, "it does not know who signed our certificate" },
    { MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED, "access denied" },
    { MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR, "it could not read a message" },
    { MBEDTLS_SSL_ALERT_MSG_DECRYPT_ERROR, "a signature or a checksum is wrong" },
    { MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION, "no TLS version in common" },
    { MBEDTLS_SSL_ALERT_MSG_INSUFFICIENT_SECURITY, "it wants stronger ciphers" },
    { MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR, "internal error" },
    { MBEDTLS_SSL_ALERT_MSG_USER_CANCELED, "cancelled" },
    { MBEDTLS_SSL_ALERT_MSG_UNRECOGNIZED_NAME, "it does not know the name" },
    { 116, "it wants a certificate of ours" },
    { MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL, "no protocol in common (ALPN)" },
};

static const struct words ERRORS[] = {
    { ERR_NO_CIPHER, "no cipher or curve in common" },
    { ERR_BAD_VERSION, "no TLS version in common: 1.2 is the least" },
    { ERR_NO_ALPN, "the greeting is malformed, or offers no protocol in common (ALPN)" },
    { MBEDTLS_ERR_SSL_INVALID_MAC, "a record was changed on its way" },
    { MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE, "an unexpected message came" },
    { MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE, "the client has sent no certificate" },
    { MBEDTLS_ERR_X509_CERT_VERIFY_FAILED, UNFIT },
    { MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE, UNFIT },
    { MBEDTLS_ERR_SSL_ALLOC_FAILED, "no memory" },
};

static const char *find(const struct words *table, size_t count, int number)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].number == number)
            return table[i].text;
    return NULL;
}

void tls_fault_set(struct tls_trouble *fault, enum tls_failure kind, const char *format, ...)
{
    va_list args;

    if (fault->kind != TLS_WELL)
        return;
    fault->kind = kind;
    va_start(args, format);
    if (vasprintf(&fault->text, format, args) < 0)
        fault->text = NULL;
    va_end(args);
}

/* An alert is two bytes: how bad, and what. */
static void from_alert(struct tls_trouble *fault, const mbedtls_ssl_context *ssl)
{
    int         number = ssl->MBEDTLS_PRIVATE(in_msg)[1];
    const char *text   = find(ALERTS, ARRAY_LEN(ALERTS), number);

    if (text)
        tls_fault_set(fault, TLS_REFUSED, "the other side breaks off: %s", text);
    else
        tls_fault_set(fault, TLS_REFUSED, "the other side breaks off with alert %d", number);
}

/* Where a record's header should be stands the beginning of a request line, or of an answer. */
static bool looks_like_http(const mbedtls_ssl_context *ssl)
{
    const unsigned char *header = ssl->MBEDTLS_PRIVATE(in_hdr);

    if (!header)
        return false;
    for (int i = 0; i < 3; i++)
        if (header[i] < 'A' || header[i] > 'Z')
            return false;
    return true;
}

/* Some servers of plain HTTP answer a hello by a page without a status line. */
static const char *no_record(const mbedtls_ssl_context *ssl)
{
    const mbedtls_ssl_config *config = ssl->MBEDTLS_PRIVATE(conf);

    if (config->MBEDTLS_PRIVATE(endpoint) == MBEDTLS_SSL_IS_CLIENT)
        return "what came is no TLS record: the port may speak plain HTTP";
    return "what came is no TLS record";
}

static enum tls_failure kind_of(int rc)
{
    switch (rc) {
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
    case MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE:
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED: return TLS_UNTRUSTED;
    }
    return TLS_BROKEN;
}

void tls_fault_from(struct tls_trouble *fault, const mbedtls_ssl_context *ssl, int rc)
{
    const char *text = find(ERRORS, ARRAY_LEN(ERRORS), rc);
    char        own[128];

    if (rc == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE) {
        from_alert(fault, ssl);
        return;
    }
    if (rc == MBEDTLS_ERR_SSL_INVALID_RECORD)
        text = no_record(ssl);
    if (looks_like_http(ssl))
        text = "the other side speaks plain HTTP, not TLS";
    if (!text) {
        mbedtls_strerror(rc, own, sizeof(own));
        text = own;
    }
    tls_fault_set(fault, kind_of(rc), "%s", text);
}

void tls_fault_fini(struct tls_trouble *fault)
{
    free(fault->text);
    *fault = (struct tls_trouble){ .kind = TLS_WELL };
}
