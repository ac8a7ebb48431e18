/* http/options.h - what an HTTP server is opened with (http/serve.h): its bounds, its dispatcher. */
#ifndef HTTP_OPTIONS_H
#define HTTP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/exchange.h"

struct addr;
struct arena_pool;
struct loop;
struct networks;
struct tls_server;

/* Every bound that a client can meet; API.md, section 15 has their names as settings. */
struct http_limits {
    uint32_t line_bytes; /* request line: 414 */
    uint32_t head_bytes; /* request line and fields: 431 */
    uint32_t head_fields;
    uint64_t body_bytes;    /* 413; an exchange may set its own */
    uint64_t head_ms;       /* from a head's first byte to its last: 408 */
    uint64_t body_ms;       /* without progress on a body that is waited for: 408 */
    uint64_t write_ms;      /* without progress on an answer: closed */
    uint64_t keep_alive_ms; /* between requests: closed */
    uint64_t half_close_ms; /* from a FIN to on_gone(), while nothing is sent */
    uint64_t
        handshake_ms; /* from the start of a connection to the end of its TLS handshake: closed */
    uint32_t connections; /* 503 */
    /* Of one HTTP/2 connection at a time, with cancelled ones that are worked on still. 0: HTTP/1 alone. */
    uint32_t streams;
    uint32_t pipeline; /* requests of one connection in one turn of the loop */
};

enum http_refusal_kind {
    REFUSED_REQUEST,   /* answered with `status` */
    REFUSED_PROXY,     /* no header of the PROXY protocol, or a bad one */
    REFUSED_HANDSHAKE, /* TLS that has failed */
    REFUSED_HELLO,     /* TLS on a port of plain HTTP */
    REFUSED_FRAMES,    /* HTTP/2 that breaks its rules, or says too much that asks for nothing */
};

/* A request that the wire answered by itself; no exchange was made of it. Or a connection that never
 * came to one, or is not to be listened to any more: that is closed without an answer. */
struct http_refusal {
    enum http_refusal_kind kind;
    unsigned               status; /* 0: none was given */
    const char            *reason; /* a fixed phrase */
    const struct addr     *peer;
    struct str start; /* what came of the request line, at most 256 bytes, raw: mask it */
};

struct http_server_options {
    struct loop              *loop;
    struct arena_pool        *arenas; /* borrowed: of the loop's thread, outlives the server */
    const struct http_limits *limits; /* copied */
    /* Who must begin with a header of the PROXY protocol; borrowed. NULL: nobody. */
    const struct networks *proxies;
    /* Connections begin with its handshake; borrowed. NULL: they are plain. */
    struct tls_server *tls;
    exchange_fn        dispatch;
    void (*on_refused)(const struct http_refusal *refusal, void *arg); /* for the log; or NULL */
    /* A TLS handshake is over; IS_RESUMED: it took up an earlier session. Or NULL. */
    void (*on_handshake)(bool is_resumed, void *arg);
    /* After http_server_drain(): the last connection has gone. From the loop's turn; may close the
     * server. Or NULL. */
    void (*on_drained)(void *arg);
    void *arg; /* for all of these */
};

/* The defaults of API.md, section 15. */
void http_limits_init(struct http_limits *limits);

#endif
