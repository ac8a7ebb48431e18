/* net/tls_worker.h - struct tls: buffers that all TLS connections of a worker share, and the queue in
 * which their handshakes take turns. Private to net/tls_*. */
#ifndef NET_TLS_WORKER_H
#define NET_TLS_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include <mbedtls/x509_crt.h>

#include "base/buf.h"
#include "base/list.h"
#include "ev/loop.h"
#include "ev/timer.h"

struct err;
struct tls_session;

enum {
    TLS_RECORD_BYTES = 16 * 1024, /* of text in a record, at most */
    TLS_RAW_BYTES    = 64 * 1024, /* received at once */
    TLS_BATCH_BYTES  = 64 * 1024, /* of text encrypted before it is sent */

    /* Encrypted and not sent: a batch with what records add; or a chain of certificates. */
    TLS_OUT_BYTES_MAX = 256 * 1024,
};

/* Something that has its turn in the queue of handshakes. */
struct tls_work {
    struct list link;
    void (*run)(struct tls_work *work); /* may free it */
};

struct tls {
    struct loop       *loop;
    struct limit_queue idles; /* of tls_pages.limit */

    struct list  queue; /* of tls_work.link */
    struct later now;
    struct timer next_turn;

    mbedtls_x509_crt roots; /* the system's, once they have been wanted */
    bool             has_roots;

    /* Of the session that is running. */
    struct tls_session *running;         /* NULL: none */
    size_t              raw_at, raw_len; /* of `raw`: received and not taken by mbedTLS yet */
    size_t              wish;            /* text that the reader has room for */
    unsigned            receives;
    size_t              received; /* bytes */
    bool                drained;  /* the socket was empty */
    struct buf          staged;   /* written by mbedTLS and not sent yet */
    char                raw[TLS_RAW_BYTES];
    unsigned char       gather[TLS_RECORD_BYTES]; /* small pieces that become one record */
};

void tls_work_init(struct tls_work *work, void (*run)(struct tls_work *work));
/* WORK runs soon, from the loop; asked twice: once. */
void tls_work_ask(struct tls *tls, struct tls_work *work);
void tls_work_cancel(struct tls_work *work); /* idempotent */

#endif
