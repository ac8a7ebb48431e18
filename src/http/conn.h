/* http/conn.h - one client connection: its cell, its bytes in, its bytes out.
 *
 * Private to the server (http/serve.h) and its protocols. Below both: the protocol (http/h1.h) moves
 * bytes by these functions, and http/conn_life.h lets the protocol work. A connection that waits for a request is
 * one cell and nothing else: bytes are read into a buffer that all connections of the worker
 * share, and only what is incomplete or cannot be written yet gets a block of its own.
 *
 * A connection moves in conn_run() alone. Calls from the work change state and ask for it with
 * conn_wake(). */
#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/str.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "http/exchange.h"
#include "http/h1_gate.h"
#include "http/options.h"
#include "net/addr.h"
#include "net/stream.h"
#include "net/tls.h"

struct channel;
struct conn;
struct exchange;
struct h1_exchange;
struct h2;
struct h2_shared;

enum {
    CONN_HEAD_READ_BYTES = 16 * 1024, /* at once, so no more of later requests is ever held */
    CONN_BODY_READ_BYTES = 64 * 1024,
    CONN_HIGH_BYTES      = 64 * 1024, /* of output, or of a body: producing stops */
    CONN_LOW_BYTES       = 16 * 1024, /* producing goes on */
    CONN_DIRECT_BYTES =
        16 * 1024, /* pieces from here on are written without copying, if possible */
    CONN_TURN_BYTES    = 1024 * 1024, /* written or dropped in one turn: then others have theirs */
    TLS_HANDSHAKE_BYTE = 0x16, /* begins every TLS connection (RFC 8446, 5.1), and no request */
};

/* --- blocks ------------------------------------------------------------------------------------- */

/* What was read and is not used yet. */
struct input {
    struct input       *next; /* in the free list */
    struct buf          bytes;
    size_t              used; /* of bytes, from the front */
    struct h1_head_gate gate; /* its place behind `used` */
};

/* What is to be written. */
struct output {
    struct output       *next; /* in the free list */
    struct buf           bytes;
    size_t               sent;     /* of bytes, from the front */
    uint64_t             written;  /* since the block was taken: positions for `answered` */
    struct h1_exchange  *answered; /* ended, but not written to their last byte; oldest first */
    struct h1_exchange **answered_last;
    int                  file_fd; /* -1, or owned: comes behind the bytes */
    off_t                file_at;
    uint64_t             file_left;
};

/* --- the connection -------------------------------------------------------------------------------- */

enum conn_state {
    CONN_OPEN,      /* requests are read and answered */
    CONN_CLOSING,   /* what is queued goes out, no request is read any more */
    CONN_LINGERING, /* our direction has ended; what still comes is dropped, or a reset would take
                     * the answer away from the client (RFC 9112, 9.6) */
    CONN_PROXIED, /* new: its proxy has first to say who the client is; then it is the next, or OPEN */
    CONN_HELLO,     /* its first byte tells whether it begins TLS (http/conn_tls.h) */
    CONN_HANDSHAKE, /* it does; then it is OPEN */
};

/* What a connection waits for: each has its limit. */
enum conn_wait {
    CONN_WAIT_WORK, /* an exchange is worked on: not the wire's time */
    CONN_WAIT_HEAD,
    CONN_WAIT_IDLE,
    CONN_WAIT_BODY,
    CONN_WAIT_ROOM, /* the client reads too slowly */
    CONN_WAIT_HALF_CLOSE,
    CONN_WAIT_LINGER,
    CONN_WAIT_CHANNEL, /* its user's time; the peer may say something or not */
    CONN_WAIT_HANDSHAKE,
};

/* What is spoken on a connection. */
enum conn_speech {
    CONN_H1,
    CONN_H1_CHANNEL, /* an HTTP/1.1 request was upgraded: bytes both ways */
    CONN_H2,
};

/* What conn_life.c needs of a protocol. */
struct conn_protocol {
    /* Reads, dispatches and writes as far as it goes. Frees nothing but what it has open. It may
     * change what is spoken: then the new protocol runs in its turn. */
    void (*run)(struct conn *conn);
    /* Something is open: the connection is not idle, and must not end. */
    bool (*is_busy)(const struct conn *conn);
    /* Then: what is waited for. */
    enum conn_wait (*waits_for)(const struct conn *conn);
    /* Time is up: half a head, a body that does not come on. */
    void (*head_is_late)(struct conn *conn);
    void (*body_is_late)(struct conn *conn);
    /* The connection dies: what is open hears WHY. */
    void (*lost)(struct conn *conn, enum gone_why why);
};

struct conn {
    struct stream       stream;
    struct http_server *server;    /* borrowed */
    struct list         link;      /* in server->conns */
    struct later        turn;      /* conn_run() is due */
    struct limit        limit;     /* for `wait` */
    union {                        /* by `speech`; NULL: nothing is open */
        struct exchange *exchange; /* the wire's share is ours */
        struct channel  *channel;  /* owned */
        struct h2       *h2;       /* owned */
    };
    struct input  *input;  /* owned; NULL: nothing is kept */
    struct output *output; /* owned; NULL: nothing is pending */
    struct addr    peer;   /* the socket's, or as its proxy says */
    union {                /* by `state` */
        uint32_t dropped;  /* LINGERING: bytes */
        uint32_t owed;     /* else: bytes that a client had still to take at its FIN */
    };
    unsigned state : 3;       /* enum conn_state */
    unsigned wait : 4;        /* enum conn_wait */
    unsigned speech : 2;      /* enum conn_speech */
    bool     running : 1;     /* conn_run() is at work: conn_wake() need not ask for it */
    bool     again : 1;       /* it stopped before all was done, in fairness */
    bool     progress : 1;    /* the limit starts anew */
    bool     checked : 1;     /* for a reset that came with bytes (see has_reset()) */
    bool     due : 1;         /* the time after a FIN is over */
    bool     served : 1;      /* a request was answered */
    bool     eof : 1;         /* the client's FIN was read */
    bool     half_closed : 1; /* bytes went out after it: the client still listens */
    bool     asked_close : 1; /* by the client, in its last request, which was read to its end */
    bool     must_reset : 1;  /* FIN would make a cut answer look complete */
    bool     failed : 1;      /* as good as reset: nothing can be done for it any more */
};

/* What was agreed on with the client; NULL: the connection is plain. */
static inline const struct tls_info *conn_tls_info(const struct conn *conn)
{
    return conn->stream.tls ? tls_info(&conn->stream) : NULL;
}

/* Asks for conn_run() in this turn, unless it is running. */
void conn_wake(struct conn *conn);
/* In the next turn: the loop looks at the other sockets first. */
void conn_put_off(struct conn *conn);

/* --- input ------------------------------------------------------------------------------------------ */

enum conn_fill {
    FILL_BYTES,
    FILL_NOTHING, /* not now */
    FILL_END,     /* FIN, or a failure: nothing comes any more */
};

/* What was read and not consumed; valid until the next fill. */
struct str conn_rest(const struct conn *conn);
void       conn_consume(struct conn *conn, size_t bytes);
/* Reads once, at most LEN bytes, behind the rest. */
enum conn_fill conn_fill(struct conn *conn, size_t len);
/* Moves the rest from the shared buffer to a block of the connection's own. */
void conn_keep_rest(struct conn *conn);
/* The head gate that knows its place in the rest. */
struct h1_head_gate *conn_gate(struct conn *conn);

/* --- output ------------------------------------------------------------------------------------------ */

/* Where to append. Never fails for want of a bound; memory that is missing shows as `failed`, and
 * the connection is cut. */
struct output *conn_output(struct conn *conn);
/* Bytes that wait, without a file's. */
size_t conn_pending(const struct conn *conn);
bool   conn_has_file(const struct conn *conn);

/* Writes what is pending and PIECES with one call if that is worth it, and keeps what was not
 * taken. */
void conn_write(struct conn *conn, const struct iovec *pieces, int count);
/* FD is owned from here on; it must not have a file already. */
void conn_write_file(struct conn *conn, int fd, off_t offset, uint64_t len);

/* Writes what is pending, file included. True: all of it has gone. */
bool conn_flush(struct conn *conn);
/* Gives the block back if nothing hangs on it. */
void conn_release_output(struct conn *conn);

/* At a connection's end, and at the server's. */
void conn_drop_blocks(struct conn *conn);
void conn_free_blocks(struct http_server *server);

/* --- what the connections of a worker share ---------------------------------------------------------- */

enum { SPARE_BUFS_MAX = 32 };

struct http_server {
    struct loop               *loop;
    struct http_server_options options; /* `limits` points below */
    struct http_limits         limits;
    struct h1_limits           head_limits;
    struct clock_date          date;

    struct limit_queue checks, heads, idles, bodies, rooms, half_closes, lingers, handshakes;

    struct list  conns;
    unsigned     conn_count;
    unsigned     stream_count;  /* of all HTTP/2 connections */
    unsigned     refused_count; /* of these, those beyond `connections`, which get a 503 */
    uint64_t     requests;
    bool         draining;
    struct later drained;
    struct list  put_off; /* connections that go on in the next turn, by their `turn` */
    struct timer next_turn;

    struct h2_shared *h2; /* owned; NULL: nobody has spoken HTTP/2 yet */

    /* Kept for use again, so that a warm server calls no malloc(). */
    struct list    free_conns;
    struct input  *free_inputs;
    struct output *free_outputs;
    unsigned       free_conn_count, free_input_count, free_output_count;
    struct buf     spare_bufs[SPARE_BUFS_MAX]; /* for request bodies */
    unsigned       spare_buf_count;

    /* Of the connection that is running. */
    struct str          rest; /* in `read_buffer` */
    struct h1_head_gate gate;
    char                read_buffer[CONN_BODY_READ_BYTES];
};

/* Memory for a request body, perhaps from an earlier one; and back. */
void spare_take(struct http_server *server, struct buf *into);
void spare_give(struct http_server *server, struct buf *from);
/* EX has none any more: its work may ask for it still. */
void spare_give_body(struct http_server *server, struct exchange *ex);

#endif
