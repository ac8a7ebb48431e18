/* net/tls_cert.h - certificates and keys from PEM: read, checked, asked whom they are for. Private to
 * net/tls_*. */
#ifndef NET_TLS_CERT_H
#define NET_TLS_CERT_H

#include <stdbool.h>
#include <stddef.h>

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "base/compiler.h"
#include "base/str.h"
#include "net/tls.h"

struct err;

enum {
    TLS_KEY_BITS_MIN     = 2048, /* of RSA: clients refuse less */
    TLS_WARN_DAYS        = 14,   /* before the end of a certificate */
    TLS_NAME_BYTES_MAX   = 253,  /* of a DNS name */
    TLS_NAMES_BYTES_ROOM = 512,  /* for a list of names, in a message */
};

/* In its owner's memory; to be freed also after an error. */
struct tls_cert {
    mbedtls_x509_crt   chain; /* the owner's first */
    mbedtls_pk_context key;
};

void tls_cert_init(struct tls_cert *cert);
void tls_cert_free(struct tls_cert *cert);

bool tls_pem_is_none(const struct tls_pem *pem);

/* 0, or an error that names the file and the way out. */
int tls_cert_read(struct tls_cert *cert, const struct tls_identity *from,
                  struct err *err) MUST_CHECK;
/* Certificates of authorities, one or more; WHAT names them in messages. */
int tls_cert_read_authorities(mbedtls_x509_crt *chain, const struct tls_pem *from, const char *what,
                              struct err *err) MUST_CHECK;

/* What a person should hear of the certificate, if WARNING says nothing yet. */
void tls_cert_warn(const struct tls_cert *cert, const struct tls_identity *from,
                   struct err *warning);

enum tls_match { TLS_MATCH_NONE, TLS_MATCH_WILDCARD, TLS_MATCH_EXACT };

/* Whether CERT is for NAME (RFC 9525): its alternative names, or, if it has none, its common name. "*"
 * stands for one label, the first. */
enum tls_match tls_cert_match(const mbedtls_x509_crt *cert, struct str name);
/* The same for an address of 4 or 16 bytes, which only the alternative names can hold. */
bool tls_cert_is_for_address(const mbedtls_x509_crt *cert, struct str address);
/* The first of its names; empty if it has none. */
struct str tls_cert_name(const mbedtls_x509_crt *cert);
/* "a.example, *.b.example": for a message. */
void tls_cert_names(const mbedtls_x509_crt *cert, char *to, size_t room);

#endif
