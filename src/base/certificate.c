/* Written by ourselves (RFC 5280), since the library of Debian 12 writes the algorithm of ECDSA with a NULL
 * that RFC 5758, 3.2 forbids, and Chromium takes no such certificate. */
#include "base/certificate.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include <mbedtls/ecp.h>
#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "base/crypto.h"
#include "base/crypto_pk.h"
#include "base/der.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"

enum {
    SERIAL_BYTES    = 16,
    KEY_ID_BYTES    = 20,  /* RFC 7093, 2: of a longer digest, the first of these */
    NAME_BYTES_MAX  = 253, /* RFC 1035, 2.3.4, without the dot at the end */
    LABEL_BYTES_MAX = 63,
    KEY_BYTES_MAX   = 256, /* of a public key on P-256: 91 */
    DAY_SECONDS     = 24 * 60 * 60,
    LAST_SHORT_YEAR = 2049, /* RFC 5280, 4.1.2.5 */
};

/* --- names of servers ----------------------------------------------------------------------------- */

static bool is_label(struct str label)
{
    if (label.len == 0 || label.len > LABEL_BYTES_MAX || label.at[0] == '-' ||
        label.at[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++) {
        char c = label.at[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '-' && c != '_')
            return false;
    }
    return true;
}

static bool is_number(struct str label)
{
    for (size_t i = 0; i < label.len; i++)
        if (label.at[i] < '0' || label.at[i] > '9')
            return false;
    return true;
}

/* With a number at its end it would be taken for an address. Behind a star there are two labels or more:
 * clients take no certificate for all of "*.com". */
static bool is_host(struct str name)
{
    if (str_starts_with(name, STR("*."))) {
        name = str_from(name, 2);
        if (str_find(name, '.') == name.len)
            return false;
    }
    if (name.len == 0 || name.len > NAME_BYTES_MAX)
        return false;
    while (name.len) {
        size_t     dot   = str_find(name, '.');
        struct str label = str_make(name.at, dot);

        if (!is_label(label) || (dot == name.len && is_number(label)))
            return false;
        if (dot + 1 == name.len)
            return false; /* a dot ends it */
        name = dot < name.len ? str_from(name, dot + 1) : STR_NONE;
    }
    return true;
}

/* The length of the address in bytes; 0: NAME is none. */
static size_t read_address(const char *name, unsigned char address[16])
{
    if (inet_pton(AF_INET, name, address) == 1)
        return 4;
    return inet_pton(AF_INET6, name, address) == 1 ? 16 : 0;
}

bool certificate_is_name(const char *name)
{
    unsigned char address[16];

    return read_address(name, address) > 0 || is_host(str_of(name));
}

/* --- the parts of a certificate, each in front of what is there ------------------------------------ */

#define OID(...)                                                                                   \
    ((const unsigned char[]){ __VA_ARGS__ }), sizeof((const unsigned char[]){ __VA_ARGS__ })

#define OID_COMMON_NAME   OID(0x55, 0x04, 0x03)
#define OID_KEY_ID        OID(0x55, 0x1d, 0x0e)
#define OID_USAGE         OID(0x55, 0x1d, 0x0f)
#define OID_NAMES         OID(0x55, 0x1d, 0x11)
#define OID_CONSTRAINTS   OID(0x55, 0x1d, 0x13)
#define OID_ISSUERS_KEY   OID(0x55, 0x1d, 0x23)
#define OID_PURPOSES      OID(0x55, 0x1d, 0x25)
#define OID_SERVERS       OID(0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01)
#define OID_ECDSA_SHA_256 OID(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)

/* A key that is part of a certificate: as it stands there, and the number it is known by. */
struct public_key {
    unsigned char bytes[KEY_BYTES_MAX]; /* SubjectPublicKeyInfo, at the end */
    size_t        len;
    char          id[CRYPTO_DIGEST_BYTES_MAX];
};

static const unsigned char *start_of(const struct public_key *key)
{
    return key->bytes + sizeof(key->bytes) - key->len;
}

static void add_algorithm(struct der *der)
{
    const unsigned char *end = der->at;

    der_add_element(der, DER_OID, OID_ECDSA_SHA_256);
    der_wrap(der, end, DER_SEQUENCE);
}

static void add_subject(struct der *der, const char *name)
{
    const unsigned char *end = der->at;

    der_add_element(der, DER_UTF8, name, strlen(name));
    der_add_element(der, DER_OID, OID_COMMON_NAME);
    der_wrap(der, end, DER_SEQUENCE);
    der_wrap(der, end, DER_SET);
    der_wrap(der, end, DER_SEQUENCE);
}

static void add_time(struct der *der, time_t when)
{
    struct tm parts;
    char      text[sizeof("YYYYMMDDhhmmssZ")];
    bool      is_long;

    gmtime_r(&when, &parts);
    is_long = parts.tm_year + 1900 > LAST_SHORT_YEAR;
    strftime(text, sizeof(text), is_long ? "%Y%m%d%H%M%SZ" : "%y%m%d%H%M%SZ", &parts);
    der_add_element(der, is_long ? DER_LONG_TIME : DER_TIME, text, strlen(text));
}

static void add_validity(struct der *der, unsigned days)
{
    const unsigned char *end = der->at;
    time_t               now = time(NULL);

    add_time(der, now + (time_t)days * DAY_SECONDS);
    add_time(der, now - DAY_SECONDS);
    der_wrap(der, end, DER_SEQUENCE);
}

/* Positive, and not shorter than it could be. */
static void add_serial(struct der *der)
{
    unsigned char bytes[SERIAL_BYTES];

    rand_bytes(bytes, sizeof(bytes));
    bytes[0] = (unsigned char)((bytes[0] & 0x3f) | 0x40);
    der_add_element(der, DER_INTEGER, bytes, sizeof(bytes));
}

/* All from DER to END becomes the value of the extension OID. */
static void wrap_extension(struct der *der, const unsigned char *end, bool is_critical,
                           const unsigned char *oid, size_t len)
{
    static const unsigned char YES = 0xff;

    der_wrap(der, end, DER_OCTETS);
    if (is_critical)
        der_add_element(der, DER_BOOLEAN, &YES, 1);
    der_add_element(der, DER_OID, oid, len);
    der_wrap(der, end, DER_SEQUENCE);
}

static void add_names(struct der *der, const struct certificate_spec *spec)
{
    const unsigned char *end = der->at;

    for (unsigned i = spec->name_count; i-- > 0;) {
        unsigned char address[16];
        size_t        len = read_address(spec->names[i], address);

        if (len)
            der_add_element(der, DER_CHOICE | 7, address, len); /* RFC 5280, 4.2.1.6 */
        else
            der_add_element(der, DER_CHOICE | 2, spec->names[i], strlen(spec->names[i]));
    }
    der_wrap(der, end, DER_SEQUENCE);
    wrap_extension(der, end, false, OID_NAMES);
}

static void add_purpose(struct der *der)
{
    const unsigned char *end = der->at;

    der_add_element(der, DER_OID, OID_SERVERS);
    der_wrap(der, end, DER_SEQUENCE);
    wrap_extension(der, end, false, OID_PURPOSES);
}

/* An authority signs certificates and lists of revoked ones, a server what it says in a handshake. */
static void add_usage(struct der *der, bool is_authority)
{
    static const unsigned char SIGNS[] = { 7, 0x80 }, CERTIFIES[] = { 1, 0x06 };

    const unsigned char *end = der->at;

    der_add_element(der, DER_BITS, is_authority ? CERTIFIES : SIGNS, 2);
    wrap_extension(der, end, true, OID_USAGE);
}

/* An authority's certificates are its own work: nobody else's authority comes in between. */
static void add_constraints(struct der *der, bool is_authority)
{
    static const unsigned char YES = 0xff, NOBODY = 0;

    const unsigned char *end = der->at;

    if (is_authority) {
        der_add_element(der, DER_INTEGER, &NOBODY, 1);
        der_add_element(der, DER_BOOLEAN, &YES, 1);
    }
    der_wrap(der, end, DER_SEQUENCE);
    wrap_extension(der, end, true, OID_CONSTRAINTS);
}

static void add_key_ids(struct der *der, const struct public_key *key,
                        const struct public_key *issuer)
{
    const unsigned char *end = der->at;

    der_add_element(der, DER_CHOICE | 0, issuer->id, KEY_ID_BYTES);
    der_wrap(der, end, DER_SEQUENCE);
    wrap_extension(der, end, false, OID_ISSUERS_KEY);
    end = der->at;
    der_add_element(der, DER_OCTETS, key->id, KEY_ID_BYTES);
    wrap_extension(der, end, false, OID_KEY_ID);
}

static void add_extensions(struct der *der, const struct certificate_spec *spec,
                           const struct public_key *key, const struct public_key *issuer)
{
    const unsigned char *end = der->at;

    if (spec->name_count)
        add_names(der, spec);
    if (!spec->is_authority)
        add_purpose(der);
    add_key_ids(der, key, issuer);
    add_usage(der, spec->is_authority);
    add_constraints(der, spec->is_authority);
    der_wrap(der, end, DER_SEQUENCE);
    der_wrap(der, end, DER_CHOICE_OF | 3);
}

static void add_version(struct der *der)
{
    static const unsigned char THIRD = 2;

    const unsigned char *end = der->at;

    der_add_element(der, DER_INTEGER, &THIRD, 1);
    der_wrap(der, end, DER_CHOICE_OF | 0);
}

/* --- making ------------------------------------------------------------------------------------------ */

/* Who signs: the authority, or the certificate itself. */
struct signer {
    mbedtls_pk_context key;
    mbedtls_x509_crt   cert; /* of an authority */
    struct public_key  public_key;
};

static int read_public(struct public_key *out, mbedtls_pk_context *key)
{
    int len = mbedtls_pk_write_pubkey_der(key, out->bytes, sizeof(out->bytes));

    if (len < 0)
        return len;
    out->len = (size_t)len;
    crypto_digest(CRYPTO_SHA256, str_make((const char *)start_of(out), out->len), out->id);
    return 0;
}

/* What is signed. */
static void add_body(struct der *der, const struct certificate_spec *spec,
                     const struct public_key *key, const struct signer *issuer)
{
    const unsigned char *end = der->at;

    add_extensions(der, spec, key, issuer ? &issuer->public_key : key);
    der_add(der, start_of(key), key->len);
    add_subject(der, spec->subject);
    add_validity(der, spec->days);
    if (issuer)
        der_add(der, issuer->cert.subject_raw.p, issuer->cert.subject_raw.len);
    else
        add_subject(der, spec->subject);
    add_algorithm(der);
    add_serial(der);
    add_version(der);
    der_wrap(der, end, DER_SEQUENCE);
}

static int add_signature(struct der *der, const struct der *body, mbedtls_pk_context *key)
{
    static const unsigned char NO_UNUSED_BITS = 0;

    const unsigned char *end = der->at;
    unsigned char        digest[CRYPTO_DIGEST_BYTES_MAX], signature[MBEDTLS_PK_SIGNATURE_MAX_SIZE];
    size_t               len;
    int                  rc;

    crypto_digest(CRYPTO_SHA256, str_make((const char *)body->at, der_len(body)), digest);
    rc = crypto_pk_sign(key, MBEDTLS_MD_SHA256, digest, crypto_digest_bytes(CRYPTO_SHA256),
                        signature, sizeof(signature), &len);
    if (rc != 0)
        return rc;
    der_add(der, signature, len);
    der_add(der, &NO_UNUSED_BITS, 1);
    der_wrap(der, end, DER_BITS);
    return 0;
}

static int write_pem(char *out, const struct der *der)
{
    size_t len;

    return mbedtls_pem_write_buffer("-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n",
                                    der->at, der_len(der), (unsigned char *)out,
                                    CERTIFICATE_PEM_BYTES_MAX, &len);
}

static int write_certificate(struct certificate *out, const struct certificate_spec *spec,
                             mbedtls_pk_context *key, struct signer *issuer)
{
    struct der        body, der;
    struct public_key public_key;
    int               rc = read_public(&public_key, key);

    if (rc != 0)
        return rc;
    der_init(&body);
    add_body(&body, spec, &public_key, issuer);
    der_init(&der);
    rc = add_signature(&der, &body, issuer ? &issuer->key : key);
    if (rc != 0)
        return rc;
    add_algorithm(&der);
    der_add(&der, body.at, der_len(&body));
    der_wrap(&der, der.bytes + sizeof(der.bytes), DER_SEQUENCE);
    return body.failed || der.failed ? -1 : write_pem(out->cert, &der);
}

static int make_key(mbedtls_pk_context *key)
{
    int rc = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

    if (rc == 0)
        rc = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), crypto_pk_random,
                                 NULL);
    return rc;
}

static int make(struct certificate *out, const struct certificate_spec *spec, struct signer *issuer,
                struct err *err)
{
    mbedtls_pk_context key;
    int                rc;

    mbedtls_pk_init(&key);
    rc = make_key(&key);
    if (rc == 0)
        rc = write_certificate(out, spec, &key, issuer);
    if (rc == 0)
        rc = mbedtls_pk_write_key_pem(&key, (unsigned char *)out->key, sizeof(out->key));
    mbedtls_pk_free(&key);
    return rc == 0 ? 0 : err_set(err, ERR_INVALID, "the certificate cannot be made (-0x%04x)", -rc);
}

static int check_spec(const struct certificate_spec *spec, struct err *err)
{
    size_t len = strlen(spec->subject);

    if (len == 0 || len > CERTIFICATE_SUBJECT_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a certificate's subject has 1 to %d bytes",
                       CERTIFICATE_SUBJECT_BYTES_MAX);
    if (spec->name_count > CERTIFICATE_NAMES_MAX)
        return err_set(err, ERR_TOO_LARGE, "a certificate has at most %d names",
                       CERTIFICATE_NAMES_MAX);
    for (unsigned i = 0; i < spec->name_count; i++)
        if (!certificate_is_name(spec->names[i]))
            return err_set(err, ERR_INVALID, "\"%s\" is no host name and no address",
                           spec->names[i]);
    return 0;
}

/* To be closed also after an error. mbedTLS wants the NULs to be counted. */
static int open_signer(struct signer *signer, const struct certificate *from, struct err *err)
{
    int rc;

    mbedtls_pk_init(&signer->key);
    mbedtls_x509_crt_init(&signer->cert);
    rc = crypto_pk_parse(&signer->key, (const unsigned char *)from->key, strlen(from->key) + 1);
    if (rc == 0)
        rc = mbedtls_x509_crt_parse(&signer->cert, (const unsigned char *)from->cert,
                                    strlen(from->cert) + 1);
    if (rc == 0)
        rc = read_public(&signer->public_key, &signer->key);
    if (rc != 0 || mbedtls_pk_get_type(&signer->key) != MBEDTLS_PK_ECKEY)
        return err_set(err, ERR_INVALID,
                       "the authority has no certificate, or no key on P-256, in PEM");
    if (crypto_pk_check_pair(&signer->cert.pk, &signer->key) != 0)
        return err_set(err, ERR_INVALID, "the authority's key belongs to another certificate");
    return 0;
}

static void close_signer(struct signer *signer)
{
    mbedtls_pk_free(&signer->key);
    mbedtls_x509_crt_free(&signer->cert);
}

int certificate_make(struct certificate *out, const struct certificate_spec *spec,
                     const struct certificate *issuer, struct err *err)
{
    struct signer signer;
    int           rc = check_spec(spec, err);

    if (rc != 0)
        return rc;
    if (!issuer)
        return make(out, spec, NULL, err);
    rc = open_signer(&signer, issuer, err);
    if (rc == 0)
        rc = make(out, spec, &signer, err);
    close_signer(&signer);
    return rc;
}
