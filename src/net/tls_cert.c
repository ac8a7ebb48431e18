#include "net/tls_cert.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mbedtls/platform_util.h>

#include "base/buf.h"
#include "base/crypto_pk.h"
#include "base/err.h"
#include "base/fs.h"

/* --- life --------------------------------------------------------------------------------------------- */

void tls_cert_init(struct tls_cert *cert)
{
    mbedtls_x509_crt_init(&cert->chain);
    mbedtls_pk_init(&cert->key);
}

void tls_cert_free(struct tls_cert *cert)
{
    mbedtls_x509_crt_free(&cert->chain);
    mbedtls_pk_free(&cert->key);
}

/* --- texts -------------------------------------------------------------------------------------------- */

struct tls_pem tls_pem_of(struct str text_or_path)
{
    if (text_or_path.len == 0)
        return (struct tls_pem){ 0 };
    if (memmem(text_or_path.at, text_or_path.len, "-----BEGIN", 10))
        return (struct tls_pem){ .text = text_or_path };
    return (struct tls_pem){ .path = text_or_path.at };
}

bool tls_pem_is_none(const struct tls_pem *pem)
{
    return !pem->path && pem->text.len == 0;
}

static const char *label(const struct tls_pem *pem)
{
    return pem->path ? pem->path : "given as text";
}

/* With the NUL that mbedTLS wants to be counted. */
static int read_pem(struct buf *to, const struct tls_pem *pem, const char *what, struct err *err)
{
    struct err why;
    int        rc = 0;

    buf_init(to, TLS_PEM_BYTES_MAX + 1);
    if (pem->path)
        rc = fs_read(pem->path, TLS_PEM_BYTES_MAX, to, NULL, &why);
    else
        buf_add_str(to, pem->text);
    if (rc != 0)
        return err_set(err, rc, "the %s cannot be read: %s", what, why.text);
    buf_add_byte(to, '\0');
    if (to->failed)
        return err_set(err, ERR_TOO_LARGE, "the %s %s is larger than a megabyte", what, label(pem));
    return 0;
}

/* Keys were in it. */
static void forget_pem(struct buf *pem)
{
    if (pem->at)
        mbedtls_platform_zeroize(pem->at, pem->len);
    buf_fini(pem);
}

static bool has(const struct buf *pem, const char *words)
{
    return memmem(pem->at, pem->len, words, strlen(words)) != NULL;
}

/* --- certificates --------------------------------------------------------------------------------------- */

static int fail_cert(const struct tls_pem *pem, const char *what, const struct buf *text,
                     int broken, struct err *err)
{
    const char *at = label(pem);

    if (broken > 0)
        return err_set(err, ERR_INVALID, "the %s %s: %d of its certificates cannot be read", what,
                       at, broken);
    if (has(text, "-----BEGIN CERTIFICATE-----"))
        return err_set(err, ERR_INVALID, "the %s %s is damaged: copy it anew", what, at);
    if (has(text, "PRIVATE KEY-----"))
        return err_set(err, ERR_INVALID, "the %s %s is a private key: perhaps the two are swapped",
                       what, at);
    if (text->len > 1 && text->at[0] == '0')
        return err_set(err, ERR_INVALID,
                       "the %s %s is not PEM: openssl x509 -inform der -in %s -out cert.pem", what,
                       at, at);
    return err_set(err, ERR_INVALID, "the %s %s has no \"-----BEGIN CERTIFICATE-----\" in it", what,
                   at);
}

int tls_cert_read_authorities(mbedtls_x509_crt *chain, const struct tls_pem *from, const char *what,
                              struct err *err)
{
    struct buf text;
    int        rc = read_pem(&text, from, what, err);

    if (rc == 0) {
        int broken = mbedtls_x509_crt_parse(chain, (unsigned char *)text.at, text.len);

        if (broken != 0)
            rc = fail_cert(from, what, &text, broken, err);
    }
    forget_pem(&text);
    return rc;
}

/* --- keys ------------------------------------------------------------------------------------------------ */

static int fail_key(const struct tls_pem *pem, const struct buf *text, struct err *err)
{
    const char *at = label(pem);

    if (has(text, "ENCRYPTED"))
        return err_set(
            err, ERR_INVALID,
            "the private key %s has a password: openssl pkey -in %s -out key.pem makes one "
            "without",
            at, at);
    if (has(text, "PRIVATE KEY-----"))
        return err_set(
            err, ERR_INVALID,
            "the private key %s is damaged, or of a kind that TLS does not use here: RSA, "
            "P-256 or P-384 is wanted",
            at);
    if (has(text, "-----BEGIN CERTIFICATE-----"))
        return err_set(err, ERR_INVALID, "%s has a certificate but no private key in it", at);
    return err_set(err, ERR_INVALID, "the private key %s is not PEM without a password", at);
}

static int read_key(mbedtls_pk_context *key, const struct tls_pem *from, struct err *err)
{
    struct buf text;
    int        rc = read_pem(&text, from, "private key", err);

    if (rc == 0 && crypto_pk_parse(key, (unsigned char *)text.at, text.len) != 0)
        rc = fail_key(from, &text, err);
    forget_pem(&text);
    return rc;
}

static int check_key(const struct tls_cert *cert, const struct tls_pem *pem,
                     const struct tls_pem *key_pem, struct err *err)
{
    size_t bits = mbedtls_pk_get_bitlen(&cert->key);

    if (mbedtls_pk_can_do(&cert->key, MBEDTLS_PK_RSA) && bits < TLS_KEY_BITS_MIN)
        return err_set(err, ERR_INVALID,
                       "the private key %s has %zu bits, and clients want %d: make a new one",
                       label(key_pem), bits, TLS_KEY_BITS_MIN);
    if (crypto_pk_check_pair(&cert->chain.pk, &cert->key) == 0)
        return 0;
    for (const mbedtls_x509_crt *other = cert->chain.next; other; other = other->next)
        if (crypto_pk_check_pair(&other->pk, &cert->key) == 0)
            return err_set(err, ERR_INVALID,
                           "the server's own certificate must come first in %s, before those of "
                           "the authorities",
                           label(pem));
    return err_set(
        err, ERR_INVALID,
        "the private key %s does not belong to the certificate %s: each is of another pair",
        label(key_pem), label(pem));
}

int tls_cert_read(struct tls_cert *cert, const struct tls_identity *from, struct err *err)
{
    const struct tls_pem *key_pem = tls_pem_is_none(&from->key) ? &from->cert : &from->key;
    int rc = tls_cert_read_authorities(&cert->chain, &from->cert, "certificate", err);

    if (rc == 0)
        rc = read_key(&cert->key, key_pem, err);
    if (rc == 0)
        rc = check_key(cert, &from->cert, key_pem, err);
    if (rc == 0 && crypto_pk_keep(&cert->key) != 0)
        rc = err_set(err, ERR_MEMORY, "no memory for TLS");
    return rc;
}

/* --- warnings -------------------------------------------------------------------------------------------- */

static double days_until(const mbedtls_x509_time *when)
{
    struct tm tm = {
        .tm_year = when->year - 1900,
        .tm_mon  = when->mon - 1,
        .tm_mday = when->day,
        .tm_hour = when->hour,
        .tm_min  = when->min,
        .tm_sec  = when->sec,
    };

    return difftime(timegm(&tm), time(NULL)) / 86400;
}

static bool leads_on(const mbedtls_x509_crt *cert)
{
    const mbedtls_x509_crt *next = cert->next;

    return !next || (next->subject_raw.len == cert->issuer_raw.len &&
                     memcmp(next->subject_raw.p, cert->issuer_raw.p, cert->issuer_raw.len) == 0);
}

void tls_cert_warn(const struct tls_cert *cert, const struct tls_identity *from,
                   struct err *warning)
{
    const mbedtls_x509_time *end = &cert->chain.valid_to, *begin = &cert->chain.valid_from;
    double                   days = days_until(end);
    const char              *path = from->cert.path ? from->cert.path : "";
    const char              *gap  = *path ? " " : "";

    if (warning->text[0])
        return;
    if (days < 0)
        err_set(warning, ERR_INVALID, "the certificate%s%s expired on %04d-%02d-%02d: renew it",
                gap, path, end->year, end->mon, end->day);
    else if (days_until(begin) > 0)
        err_set(warning, ERR_INVALID,
                "the certificate%s%s is not valid before %04d-%02d-%02d: is the clock right?", gap,
                path, begin->year, begin->mon, begin->day);
    else if (days < TLS_WARN_DAYS)
        err_set(warning, ERR_INVALID, "the certificate%s%s expires in %.0f days: renew it", gap,
                path, days);
    else if (!leads_on(&cert->chain))
        err_set(warning, ERR_INVALID,
                "the certificates%s%s do not follow each other: clients may not trust them",
                *path ? " in " : "", path);
}

/* --- names ------------------------------------------------------------------------------------------------ */

/* Tags of GeneralName (RFC 5280, 4.2.1.6). */
enum {
    TAG_DNS     = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2,
    TAG_ADDRESS = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7,
};

static bool has_alternatives(const mbedtls_x509_crt *cert)
{
    return cert->subject_alt_names.buf.p != NULL;
}

static struct str text_of(const mbedtls_asn1_buf *buf)
{
    return str_make((const char *)buf->p, buf->len);
}

static struct str common_name(const mbedtls_x509_crt *cert)
{
    static const unsigned char CN[] = { 0x55, 0x04, 0x03 }; /* 2.5.4.3 */

    for (const mbedtls_asn1_named_data *part = &cert->subject; part; part = part->next)
        if (part->oid.len == sizeof(CN) && memcmp(part->oid.p, CN, sizeof(CN)) == 0)
            return text_of(&part->val);
    return STR_NONE;
}

static enum tls_match match(struct str pattern, struct str name)
{
    size_t label_len = str_find(name, '.');

    if (str_is_nocase(pattern, name))
        return TLS_MATCH_EXACT;
    if (!str_starts_with(pattern, STR("*.")) || label_len == 0 || label_len == name.len)
        return TLS_MATCH_NONE;
    pattern = str_from(pattern, 1);
    if (str_find(str_from(pattern, 1), '.') == pattern.len - 1) /* "*.com" is nobody's */
        return TLS_MATCH_NONE;
    return str_is_nocase(pattern, str_from(name, label_len)) ? TLS_MATCH_WILDCARD : TLS_MATCH_NONE;
}

enum tls_match tls_cert_match(const mbedtls_x509_crt *cert, struct str name)
{
    enum tls_match best = TLS_MATCH_NONE;

    if (!has_alternatives(cert))
        return match(common_name(cert), name);
    for (const mbedtls_x509_sequence *at = &cert->subject_alt_names; at; at = at->next) {
        enum tls_match found =
            at->buf.tag == TAG_DNS ? match(text_of(&at->buf), name) : TLS_MATCH_NONE;

        best = found > best ? found : best;
    }
    return best;
}

bool tls_cert_is_for_address(const mbedtls_x509_crt *cert, struct str address)
{
    if (!has_alternatives(cert))
        return false;
    for (const mbedtls_x509_sequence *at = &cert->subject_alt_names; at; at = at->next)
        if (at->buf.tag == TAG_ADDRESS && str_is(text_of(&at->buf), address))
            return true;
    return false;
}

struct str tls_cert_name(const mbedtls_x509_crt *cert)
{
    if (!has_alternatives(cert))
        return common_name(cert);
    for (const mbedtls_x509_sequence *at = &cert->subject_alt_names; at; at = at->next)
        if (at->buf.tag == TAG_DNS)
            return text_of(&at->buf);
    return STR_NONE;
}

static void add_name(char *to, size_t room, const mbedtls_asn1_buf *name)
{
    char        address[INET6_ADDRSTRLEN] = "";
    struct str  text                      = text_of(name);
    size_t      len                       = strlen(to);
    const char *comma                     = len ? ", " : "";

    if (name->tag == TAG_ADDRESS) {
        inet_ntop(name->len == 4 ? AF_INET : AF_INET6, name->p, address, sizeof(address));
        text = str_of(address);
    }
    snprintf(to + len, room - len, "%s%.*s", comma, STR_ARG(text));
}

/* A stranger has written them: a message is one line. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text == 127)
            *text = '?';
}

static void add_names(const mbedtls_x509_crt *cert, char *to, size_t room)
{
    for (const mbedtls_x509_sequence *at = &cert->subject_alt_names; at; at = at->next)
        if (at->buf.tag == TAG_DNS ||
            (at->buf.tag == TAG_ADDRESS && (at->buf.len == 4 || at->buf.len == 16)))
            add_name(to, room, &at->buf);
}

void tls_cert_names(const mbedtls_x509_crt *cert, char *to, size_t room)
{
    to[0] = '\0';
    if (has_alternatives(cert))
        add_names(cert, to, room);
    else
        snprintf(to, room, "%.*s", STR_ARG(common_name(cert)));
    make_printable(to);
}
