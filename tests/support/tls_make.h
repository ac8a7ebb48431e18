/* tests/support/tls_make.h - certificates as tests need them: of several kinds, old ones, for any name.
 * (base/certificate makes those that a developer's machine needs.) */
#ifndef TESTS_SUPPORT_TLS_MAKE_H
#define TESTS_SUPPORT_TLS_MAKE_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <mbedtls/platform_util.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>

#include "base/buf.h"
#include "base/crypto_pk.h"
#include "base/err.h"
#include "base/rand.h"
#include "net/tls_lib.h"

enum { TLS_MADE_NAMES_MAX = 64, TLS_MADE_BYTES_MAX = 16 * 1024 };

/* In PEM. Zeroed: nothing. */
struct tls_made {
    struct buf cert;
    struct buf key;
};

struct tls_wish {
    const char *const
        *names; /* hosts, "*.example" and addresses; ends with NULL. May be NULL for an authority */
    const char            *subject; /* the common name; NULL: the first of the names */
    const struct tls_made *issuer;  /* an authority; NULL: signs itself */
    bool                   is_authority;
    bool                   is_rsa; /* 2,048 bits; else P-256 */
    int64_t                from_s; /* since 1970; 0: an hour ago, for clocks that are late */
    unsigned               days;
};

enum { SERIAL_BYTES = 16, RSA_BITS = 2048, NAME_BYTES_MAX = 253, SUBJECT_BYTES = 300 };

/* What is needed between the first step and the last. */
struct tls_making {
    mbedtls_x509write_cert cert;
    mbedtls_pk_context     key, issuer_key;
    mbedtls_x509_crt       issuer;
};

static int made_fail(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "the certificate cannot be made: %s", what);
}

/* --- keys ------------------------------------------------------------------------------------------------ */

static int make_key(mbedtls_pk_context *key, bool is_rsa)
{
    mbedtls_pk_type_t type = is_rsa ? MBEDTLS_PK_RSA : MBEDTLS_PK_ECKEY;
    int               rc   = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(type));

    if (rc != 0)
        return rc;
    if (is_rsa)
        return mbedtls_rsa_gen_key(mbedtls_pk_rsa(*key), crypto_pk_random, NULL, RSA_BITS, 65537);
    return mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), crypto_pk_random,
                               NULL);
}

static int write_key(struct buf *to, mbedtls_pk_context *key)
{
    unsigned char text[TLS_MADE_BYTES_MAX];
    int           rc = mbedtls_pk_write_key_pem(key, text, sizeof(text));

    if (rc == 0)
        buf_add_str(to, str_of((char *)text));
    mbedtls_platform_zeroize(text, sizeof(text));
    return rc;
}

/* --- extensions -------------------------------------------------------------------------------------------- */

/* Lengths of DER; what stands here is shorter than 64 KiB. */
static void add_tlv(struct buf *to, unsigned char tag, struct str value)
{
    buf_add_byte(to, (char)tag);
    if (value.len >= 256) {
        buf_add_byte(to, (char)0x82);
        buf_add_byte(to, (char)(value.len >> 8));
    } else if (value.len >= 128) {
        buf_add_byte(to, (char)0x81);
    }
    buf_add_byte(to, (char)(value.len & 255));
    buf_add_str(to, value);
}

static int add_name(struct buf *to, const char *name)
{
    unsigned char address[16];
    size_t        len = strlen(name);

    if (inet_pton(AF_INET, name, address) == 1)
        add_tlv(to, MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7, str_make((char *)address, 4));
    else if (inet_pton(AF_INET6, name, address) == 1)
        add_tlv(to, MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7, str_make((char *)address, 16));
    else if (len > 0 && len <= NAME_BYTES_MAX)
        add_tlv(to, MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2, str_of(name));
    else
        return -1;
    return 0;
}

static int add_names(mbedtls_x509write_cert *cert, const char *const *names)
{
    static const char OID[] = "\x55\x1D\x11"; /* 2.5.29.17 */
    struct buf        list, whole;
    int               rc = 0;

    if (!names || !names[0])
        return 0;
    buf_init(&list, TLS_MADE_BYTES_MAX);
    buf_init(&whole, TLS_MADE_BYTES_MAX + 8);
    for (unsigned i = 0; names[i] && rc == 0; i++)
        rc = i < TLS_MADE_NAMES_MAX ? add_name(&list, names[i]) : -1;
    add_tlv(&whole, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE, buf_str(&list));
    if (list.failed || whole.failed)
        rc = -1;
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_extension(cert, OID, sizeof(OID) - 1, 0,
                                                 (unsigned char *)whole.at, whole.len);
    buf_fini(&list);
    buf_fini(&whole);
    return rc;
}

/* For servers and clients. */
static int add_purposes(mbedtls_x509write_cert *cert)
{
    static const char          OID[]     = "\x55\x1D\x25"; /* 2.5.29.37 */
    static const unsigned char PURPOSE[] = {
        0x30, 0x14, 0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, /* ...3.1: servers */
        0x01, 0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02, /* ...3.2: clients */
    };

    return mbedtls_x509write_crt_set_extension(cert, OID, sizeof(OID) - 1, 0, PURPOSE,
                                               sizeof(PURPOSE));
}

static int add_extensions(mbedtls_x509write_cert *cert, const struct tls_wish *wish)
{
    unsigned usage = wish->is_authority ? MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN
                                        : MBEDTLS_X509_KU_DIGITAL_SIGNATURE;
    int      rc    = mbedtls_x509write_crt_set_basic_constraints(cert, wish->is_authority,
                                                         wish->is_authority ? 0 : -1);

    if (rc == 0)
        rc = mbedtls_x509write_crt_set_key_usage(cert, usage);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_subject_key_identifier(cert);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_authority_key_identifier(cert);
    if (rc == 0 && !wish->is_authority)
        rc = add_purposes(cert);
    return rc == 0 ? add_names(cert, wish->names) : rc;
}

/* --- the certificate ---------------------------------------------------------------------------------------- */

#if MBEDTLS_VERSION_NUMBER >= 0x03000000

static int set_serial(mbedtls_x509write_cert *cert, unsigned char *serial, size_t len)
{
    return mbedtls_x509write_crt_set_serial_raw(cert, serial, len);
}

#else

static int set_serial(mbedtls_x509write_cert *cert, unsigned char *serial, size_t len)
{
    mbedtls_mpi number;
    int         rc;

    mbedtls_mpi_init(&number);
    rc = mbedtls_mpi_read_binary(&number, serial, len);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_serial(cert, &number);
    mbedtls_mpi_free(&number);
    return rc;
}

#endif

/* Random, positive, and without a zero in front. */
static int choose_serial(mbedtls_x509write_cert *cert)
{
    unsigned char serial[SERIAL_BYTES];

    rand_bytes(serial, sizeof(serial));
    serial[0] = (unsigned char)((serial[0] & 0x7F) | 0x40);
    return set_serial(cert, serial, sizeof(serial));
}

static int set_times(mbedtls_x509write_cert *cert, const struct tls_wish *wish)
{
    time_t    from = (time_t)(wish->from_s ? wish->from_s : time(NULL) - 3600);
    time_t    end  = from + (time_t)wish->days * 86400;
    char      begin_text[16], end_text[16];
    struct tm tm;

    if (!gmtime_r(&from, &tm) || !strftime(begin_text, sizeof(begin_text), "%Y%m%d%H%M%S", &tm) ||
        !gmtime_r(&end, &tm) || !strftime(end_text, sizeof(end_text), "%Y%m%d%H%M%S", &tm))
        return -1;
    return mbedtls_x509write_crt_set_validity(cert, begin_text, end_text);
}

/* What would end the name in the notation of mbedTLS is not let in. */
static int write_subject(char *to, const struct tls_wish *wish)
{
    const char *name = wish->subject ? wish->subject : wish->names ? wish->names[0] : NULL;
    size_t      len  = name ? strlen(name) : 0;

    if (len == 0 || len > NAME_BYTES_MAX || strpbrk(name, ",=+\"\\<>#;"))
        return -1;
    memcpy(to, "CN=", 3);
    memcpy(to + 3, name, len + 1);
    to[3 + (len < 64 ? len : 64)] = '\0'; /* X.520's bound of a common name */
    return 0;
}

static int parse_issuer(struct tls_making *making, const struct tls_made *issuer)
{
    struct buf text;
    int        rc;

    buf_init(&text, TLS_MADE_BYTES_MAX);
    buf_add_str(&text, buf_str(&issuer->cert));
    buf_add_byte(&text, '\0');
    rc = mbedtls_x509_crt_parse(&making->issuer, (unsigned char *)text.at, text.len);
    buf_clear(&text);
    buf_add_str(&text, buf_str(&issuer->key));
    buf_add_byte(&text, '\0');
    if (rc == 0)
        rc = crypto_pk_parse(&making->issuer_key, (unsigned char *)text.at, text.len);
    if (text.at)
        mbedtls_platform_zeroize(text.at, text.room);
    buf_fini(&text);
    return rc;
}

static int set_issuer(struct tls_making *making, const struct tls_wish *wish, const char *subject)
{
    char name[SUBJECT_BYTES];
    int  rc;

    if (!wish->issuer) {
        mbedtls_x509write_crt_set_issuer_key(&making->cert, &making->key);
        return mbedtls_x509write_crt_set_issuer_name(&making->cert, subject);
    }
    rc = parse_issuer(making, wish->issuer);
    if (rc == 0 && mbedtls_x509_dn_gets(name, sizeof(name), &making->issuer.subject) < 0)
        rc = -1;
    mbedtls_x509write_crt_set_issuer_key(&making->cert, &making->issuer_key);
    return rc == 0 ? mbedtls_x509write_crt_set_issuer_name(&making->cert, name) : rc;
}

static int write_cert(struct buf *to, mbedtls_x509write_cert *cert)
{
    unsigned char text[TLS_MADE_BYTES_MAX];
    int           rc = mbedtls_x509write_crt_pem(cert, text, sizeof(text), crypto_pk_random, NULL);

    if (rc == 0)
        buf_add_str(to, str_of((char *)text));
    return rc;
}

static int make_parts(struct tls_making *making, struct tls_made *out, const struct tls_wish *wish,
                      struct err *err)
{
    mbedtls_x509write_cert *cert = &making->cert;
    char                    subject[SUBJECT_BYTES];

    if (write_subject(subject, wish) != 0)
        return made_fail(err, "its name is empty, too long, or has one of ,=+\"\\<>#; in it");
    if (make_key(&making->key, wish->is_rsa) != 0)
        return made_fail(err, "no key comes about");
    mbedtls_x509write_crt_set_version(cert, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(cert, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(cert, &making->key);
    if (mbedtls_x509write_crt_set_subject_name(cert, subject) != 0)
        return made_fail(err, "its name is not accepted");
    if (set_issuer(making, wish, subject) != 0)
        return made_fail(err, "the authority's certificate or key cannot be read");
    if (choose_serial(cert) != 0 || set_times(cert, wish) != 0)
        return made_fail(err, "its times lie too far away");
    if (add_extensions(cert, wish) != 0)
        return made_fail(err, "one of its names is empty or too long, or there are too many");
    if (write_cert(&out->cert, cert) != 0 || write_key(&out->key, &making->key) != 0)
        return made_fail(err, "it is too large");
    return out->cert.failed || out->key.failed ? err_set(err, ERR_MEMORY, "no memory for it") : 0;
}

/* OUT is to be ended by tls_made_fini() also after an error. */
static inline int tls_make(struct tls_made *out, const struct tls_wish *wish, struct err *err)
{
    struct tls_making making;
    int               rc;

    buf_init(&out->cert, TLS_MADE_BYTES_MAX);
    buf_init(&out->key, TLS_MADE_BYTES_MAX);
    if (tls_lib_start() != 0)
        return made_fail(err, "mbedTLS does not start");
    mbedtls_x509write_crt_init(&making.cert);
    mbedtls_pk_init(&making.key);
    mbedtls_pk_init(&making.issuer_key);
    mbedtls_x509_crt_init(&making.issuer);
    rc = make_parts(&making, out, wish, err);
    mbedtls_x509write_crt_free(&making.cert);
    mbedtls_pk_free(&making.key);
    mbedtls_pk_free(&making.issuer_key);
    mbedtls_x509_crt_free(&making.issuer);
    return rc;
}

static inline void tls_made_fini(struct tls_made *made)
{
    if (made->key.at)
        mbedtls_platform_zeroize(made->key.at, made->key.room);
    buf_fini(&made->cert);
    buf_fini(&made->key);
}

#endif
