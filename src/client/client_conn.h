/* client/client_conn.h - what client/client.h is about: a connection, who wants one, how many there may be. */
#ifndef CLIENT_CLIENT_CONN_H
#define CLIENT_CLIENT_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "ev/timer.h"
#include "net/stream.h"

struct client_bridge;
struct client_dial;
struct client_origin;
struct client_share;
struct client_tls;
struct h2_client_events;
struct http_client;

enum {
    CLIENT_TOTAL      = 256,
    CLIENT_PER_ORIGIN = 64,
    CLIENT_IDLE_MS    = 60 * 1000,
    CLIENT_QUEUE_MAX  = 1024, /* calls that may wait for a connection; then `busy` */
};

struct client_options {
    unsigned total; /* connections that are being opened, lent or idle */
    unsigned per_origin;
    uint64_t idle_ms; /* one that lies idle longer is closed */
};

struct http_client_stats {
    unsigned open; /* all, also those that are being opened */
    unsigned idle;
    unsigned waiting; /* for a connection */
    uint64_t opened;  /* since the start */
    uint64_t reused;
};

/* --- a connection -------------------------------------------------------------------------------- */

/* Lent to who wanted it; the fields are his until client_give(). With HTTP/2 it is lent to many, who have
 * a stream each and leave the other fields alone. */
struct client_conn {
    struct stream         stream;
    struct http_client   *client;
    struct client_origin *origin;
    struct client_bridge *bridge;    /* to a proxy of https, or NULL */
    struct client_share  *share;     /* NULL: HTTP/1 */
    struct list           of_shared; /* with a share, until its end */
    struct list           of_origin; /* while idle */
    struct list           of_all;    /* while idle, oldest first */
    struct limit          idle;
    unsigned              served; /* calls before this one */

    /* Unread bytes are input.at + input_at to its end. Freed while idle. */
    struct buf input;
    size_t     input_at;

    /* The stream's events while it is lent. May give it back. */
    void (*on_event)(struct client_conn *conn, void *arg);
    void *arg;
};

/* HTTP/2: the call's stream has ended or was cancelled. Else AT_REST: the response has ended, the request too,
 * both sides keep the connection and no byte is unread; else it is closed. It is gone from here on. */
void client_give(struct client_conn *conn, bool at_rest);

/* --- wanting one -----------------------------------------------------------------------------------*/

struct client_target {
    struct str  key;
    struct str  host; /* what is dialled: the proxy's, if there is one */
    uint16_t    port;
    const char *path;             /* a Unix socket, or NULL */
    struct str  tunnel;           /* the head that has the proxy open one; empty: none is needed */
    const struct client_tls *tls; /* NULL: none */
    const struct client_tls *proxy_tls;    /* NULL: what is dialled is no proxy, or does without */
    uint64_t                 connect_ms;   /* until requests may be sent; 0: no limit of its own */
    bool                     fresh;        /* no idle one */
    bool                     is_h2;        /* HTTP/2 without TLS, taken for granted */
    const struct h2_client_events *events; /* of streams, where HTTP/2 is spoken */
};

/* In its owner's memory. */
struct client_want {
    struct list           link; /* in the queue; private from here */
    struct http_client   *client;
    struct client_origin *origin;
    struct client_dial   *dialling;
    struct client_target  target;

    /* From the loop's turn, once, if client_want_start() returned 0. */
    void (*done)(struct client_want *want);

    /* Then: a connection, or why there is none: `timeout`, `dns`, `refused`, `busy`, or what
     * client/client_setup.h has. */
    struct client_conn *conn;
    const char         *fault;
    struct err          err;
};

#endif
