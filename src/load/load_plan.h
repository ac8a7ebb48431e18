/* load/load_plan.h - what a load is to be: which requests, over which connections, how fast and for
 * how long. Texts are borrowed until load_free(). */
#ifndef LOAD_LOAD_PLAN_H
#define LOAD_LOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "net/addr.h"

enum {
    LOAD_THREADS_MAX     = 64,
    LOAD_CONNECTIONS_MAX = 100000,
    LOAD_PIPELINING_MAX  = 1000,
    LOAD_FIELDS_MAX      = 256,   /* of a request of HTTP/2 */
    LOAD_WHEEL_MAX       = 10000, /* steps until requests repeat: the sum of their weights */
    LOAD_ID_BYTES        = 27,    /* what stands in a request for each of its `ids` */
    LOAD_OUT_BYTES_MAX =
        1 << 30, /* under way on a connection: the largest request times pipelining */
};

struct field;

enum load_speech {
    LOAD_SPEAKS_H1,
    LOAD_SPEAKS_H2, /* by ALPN with TLS, else by prior knowledge */
    LOAD_SPEAKS_WS, /* WebSocket: bodies are messages, which the server echoes */
};

struct load_origin {
    struct addr addr;
    bool        has_tls;
    struct str  name; /* with TLS: whom its certificate is to be for */
};

/* For all origins that have it. Paths of files in PEM. */
struct load_tls {
    const char *ca;   /* instead of the system's roots, or NULL */
    const char *cert; /* our own, or NULL */
    const char *key;
    bool        trusts_all;
    bool        is_always_full; /* no session is taken up again */
};

struct load_request {
    struct str bytes; /* head and body as they go out, on connections to `origin` */
    /* HTTP/2: what `bytes` consists of before the body. Spans of it. WebSocket: before the body stands the
     * head of a handshake, without the fields that are WebSocket's and without the empty line. */
    const struct field *fields;
    unsigned            field_count;
    size_t              body_at;
    unsigned            origin;
    bool                is_head;     /* its method is HEAD */
    bool                checks_body; /* the response's body is to be `expect` */
    struct str          expect;
    const uint32_t     *ids; /* LOAD_ID_BYTES at each of these places become an id of their own */
    unsigned            id_count;
};

struct load_plan {
    const struct load_origin  *origins;
    const struct load_request *requests;
    /* Each connection goes through the requests of its origin in this order, round and round;
     * connections are dealt out to origins in proportion. Indices of `requests`. */
    const unsigned *wheel;
    unsigned        origin_count, request_count, wheel_len;

    unsigned threads;     /* 1 to LOAD_THREADS_MAX, and not more than connections */
    unsigned connections; /* 1 to LOAD_CONNECTIONS_MAX, in all */
    unsigned
        pipelining; /* requests or messages under way on a connection; 1 to LOAD_PIPELINING_MAX */

    enum load_speech speech;
    bool             is_binary; /* WebSocket: messages are no text */
    struct load_tls  tls;

    uint64_t duration_ms; /* 0: until `amount` is used up */
    uint64_t amount;      /* requests in all; 0: no bound */
    double   rate;        /* requests a second in all, evenly spaced; 0: as fast as answers come */
    uint64_t timeout_ms;  /* to be connected, and from a request to the end of its response */

    uint64_t per_connection; /* requests, then a connection is used no more; 0: no bound */
    uint64_t reconnect;      /* requests, then it is made anew; 0: never */
    bool     only_ok;        /* times of responses that are not 2xx are not kept */
    uint64_t bailout;        /* faults in all that end the load; 0: none do */
};

#endif
