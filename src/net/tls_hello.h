/* net/tls_hello.h - the message that a client begins with, before mbedTLS sees it. Private to net/tls_*.
 *
 * A client may cut it into any number of records (RFC 5246, 6.2.1), some to get past whoever looks for
 * names in packets. mbedTLS 2.28 wants it in one. And a ticket in it may stand before the name that the
 * ticket must be for. */
#ifndef NET_TLS_HELLO_H
#define NET_TLS_HELLO_H

#include "base/str.h"

struct buf;

enum {
    TLS_HELLO_BYTES_MAX = 16 * 1024, /* of the message: a record's room */
    TLS_HELLO_RAW_MAX   = 20 * 1024, /* of its records */
};

enum tls_hello {
    TLS_HELLO_MORE,  /* not all of it is there */
    TLS_HELLO_WHOLE, /* in records of its own */
    TLS_HELLO_OTHER, /* something else, or too long: mbedTLS says what is wrong with it */
};

/* What RECORDS begin with. */
enum tls_hello tls_hello_look(struct str records);

/* RECORDS, that begin with a whole one, have it in one record then. */
void tls_hello_join(struct buf *records);

/* The host that a joined one names, as it is written there (SNI); empty: none. */
struct str tls_hello_name(struct str records);

#endif
