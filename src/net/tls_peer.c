#include "net/tls_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "net/tls_cert.h"
#include "net/tls_lib.h"
#include "net/tls_session.h"

enum { SUBJECT_BYTES = 512, SERIAL_BYTES = 128, FINGERPRINT_BYTES = 32 };

/* --- doubts ------------------------------------------------------------------------------------------ */

struct day {
    char text[16];
};

static struct day day_of(const mbedtls_x509_time *when)
{
    struct day day;

    snprintf(day.text, sizeof(day.text), "%04d-%02d-%02d", when->year % 10000, when->mon % 100,
             when->day % 100);
    return day;
}

static void dn_text(char *to, size_t room, const mbedtls_x509_name *name)
{
    if (mbedtls_x509_dn_gets(to, room, name) < 0)
        snprintf(to, room, "a name that is too long");
}

static bool is_its_own_issuer(const mbedtls_x509_crt *cert)
{
    return cert->issuer_raw.len == cert->subject_raw.len &&
           memcmp(cert->issuer_raw.p, cert->subject_raw.p, cert->issuer_raw.len) == 0;
}

static void doubt_issuer(struct tls_trouble *fault, const mbedtls_x509_crt *cert, const char *whose)
{
    char issuer[SUBJECT_BYTES];

    dn_text(issuer, sizeof(issuer), &cert->issuer);
    if (is_its_own_issuer(cert))
        tls_fault_set(fault, TLS_UNTRUSTED, "%s is signed by itself, not by a known authority",
                      whose);
    else
        tls_fault_set(fault, TLS_UNTRUSTED, "%s is not signed by a known authority: by %s", whose,
                      issuer);
}

static void doubt_name(struct tls_trouble *fault, const mbedtls_x509_crt *cert, const char *name)
{
    char names[TLS_NAMES_BYTES_ROOM];

    tls_cert_names(cert, names, sizeof(names));
    tls_fault_set(fault, TLS_UNTRUSTED, "the certificate of %s is for %s", name,
                  names[0] ? names : "nobody: it has no name");
}

enum {
    NOT_MEANT = MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE |
                MBEDTLS_X509_BADCERT_NS_CERT_TYPE,
    TOO_WEAK =
        MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK | MBEDTLS_X509_BADCERT_BAD_KEY,
};

void tls_peer_doubt(struct tls_session *session, const mbedtls_x509_crt *cert, int depth,
                    uint32_t flags, const char *name)
{
    struct tls_trouble *fault = &session->fault;
    char                subject[SUBJECT_BYTES], whose[SUBJECT_BYTES + 64];

    dn_text(subject, sizeof(subject), &cert->subject);
    snprintf(whose, sizeof(whose), "the certificate of %s", depth == 0 ? name : subject);
    if (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH)
        doubt_name(fault, cert, name);
    else if (flags & MBEDTLS_X509_BADCERT_EXPIRED)
        tls_fault_set(fault, TLS_UNTRUSTED, "%s expired on %s", whose,
                      day_of(&cert->valid_to).text);
    else if (flags & MBEDTLS_X509_BADCERT_FUTURE)
        tls_fault_set(fault, TLS_UNTRUSTED, "%s is valid from %s only: is the clock right?", whose,
                      day_of(&cert->valid_from).text);
    else if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED)
        doubt_issuer(fault, cert, whose);
    else if (flags & NOT_MEANT)
        tls_fault_set(fault, TLS_UNTRUSTED, "%s is not meant for this use", whose);
    else if (flags & TOO_WEAK)
        tls_fault_set(fault, TLS_UNTRUSTED, "%s is signed too weakly, or its key is too short",
                      whose);
    else if (flags)
        tls_fault_set(fault, TLS_UNTRUSTED, "%s is not accepted (0x%x)", whose, (unsigned)flags);
}

/* --- what is known ------------------------------------------------------------------------------------- */

static void write_hex(char *to, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

void tls_peer_learn(struct tls_session *session)
{
    const mbedtls_x509_crt *cert = mbedtls_ssl_get_peer_cert(&session->ssl);
    char                    subject[SUBJECT_BYTES], serial[SERIAL_BYTES];
    char                    fingerprint[2 * FINGERPRINT_BYTES + 1];
    unsigned char           digest[FINGERPRINT_BYTES];
    int                     len;

    if (!cert)
        return;
    dn_text(subject, sizeof(subject), &cert->subject);
    if (mbedtls_x509_serial_gets(serial, sizeof(serial), &cert->serial) < 0)
        serial[0] = '\0';
    crypto_digest(CRYPTO_SHA256, str_make((char *)cert->raw.p, cert->raw.len), digest);
    write_hex(fingerprint, digest, sizeof(digest));

    len = asprintf(&session->peer, "%s%c%s%c%s", subject, 0, serial, 0, fingerprint);
    if (len < 0) {
        session->peer = NULL;
        return;
    }
    session->info.peer_subject     = session->peer;
    session->info.peer_serial      = session->peer + strlen(subject) + 1;
    session->info.peer_fingerprint = session->info.peer_serial + strlen(serial) + 1;
}
