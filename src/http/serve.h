/* http/serve.h - the HTTP server of one worker: connections in, exchanges out.
 *
 * Accepted sockets are given to it, each complete request head goes to the dispatcher as an
 * exchange (http/exchange.h). All of it belongs to the loop's thread; nothing is shared between
 * workers. Knows no Lua. */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/exchange.h"

struct addr;
struct arena_pool;
struct http_server;
struct loop;

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
    uint64_t half_close_ms; /* from a FIN to on_gone(), while nothing was answered */
    uint32_t connections;   /* 503 */
    uint32_t pipeline;      /* requests of one connection in one turn of the loop */
};

/* A request that the wire answered by itself; no exchange was made of it. */
struct http_refusal {
    unsigned           status;
    const char        *reason; /* a fixed phrase */
    const struct addr *peer;
    struct str         start; /* what came of the request line, at most 256 bytes, raw: mask it */
};

struct http_server_options {
    struct loop              *loop;
    struct arena_pool        *arenas; /* borrowed: of the loop's thread, outlives the server */
    const struct http_limits *limits; /* copied */
    exchange_fn               dispatch;
    void (*on_refused)(const struct http_refusal *refusal, void *arg); /* for the log; or NULL */
    /* After http_server_drain(): the last connection has gone. From the loop's turn; may close the
     * server. Or NULL. */
    void (*on_drained)(void *arg);
    void *arg; /* for all three */
};

/* The defaults of API.md, section 15. */
void http_limits_init(struct http_limits *limits);

struct http_server *http_server_open(const struct http_server_options *options);

/* Takes FD, connected and non-blocking; it is closed if there is no place for it. PEER is copied. */
void http_server_accept(struct http_server *server, int fd, const struct addr *peer);

unsigned http_server_connections(const struct http_server *server); /* open now */
uint64_t http_server_requests(const struct http_server *server);    /* heads read since the start */

/* No request is lost, none is kept alive any more: answers say close, idle connections get a FIN
 * and a second in which what they still send is read. Sockets may be given to it as before. */
void http_server_drain(struct http_server *server);

/* Cuts what is open: exchanges hear on_gone(GONE_SHUTDOWN) from inside this call, so it is not for
 * an exchange's own callbacks. NULL is fine. */
void http_server_close(struct http_server *server);

#endif
