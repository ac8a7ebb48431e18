/* data/redis_conn.h - one connection to Redis: dialled, greeted, then bytes out and replies in, in
 * order. Who waits for which reply, and what happens after an end, is the owner's: the pipeline
 * (data/redis_pipe) or a subscription (data/redis_sub).
 *
 * For data/redis*.c; belongs to the loop's thread. */
#ifndef DATA_REDIS_CONN_H
#define DATA_REDIS_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "data/redis_url.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dial.h"
#include "net/stream.h"

struct dns;
struct fault;
struct redis_conn;
struct redis_reader;
struct redis_tls;

enum {
    REDIS_OUT_BYTES_MAX = 64 * 1024 * 1024, /* that are not sent yet */
};

enum redis_conn_state {
    REDIS_CONN_OFF,     /* nothing is open */
    REDIS_CONN_DIALING, /* name and socket */
    REDIS_CONN_SHAKING, /* TLS: its handshake */
    REDIS_CONN_GREETING, /* AUTH, SELECT and a PING are out: a server that hangs never gets further */
    REDIS_CONN_READY,
};

/* Where to; borrowed by the connections, outlives them. */
struct redis_place {
    struct loop        *loop;
    struct dns         *dns;
    struct redis_target target;
    char                name[REDIS_PLACE_BYTES]; /* for messages */
    struct redis_tls   *tls;                     /* NULL: plain */
    uint64_t            connect_ms; /* for dialling and greeting together; to subscribe */
};

/* All come from the loop's turn. */
struct redis_conn_events {
    void (*on_ready)(struct redis_conn *conn);
    /* *REPLY (data/redis_reply.h) may be taken: then leave an empty buf. May close the connection. */
    void (*on_reply)(struct redis_conn *conn, struct buf *reply);
    /* Closed by the world, and REDIS_CONN_OFF now. May free the connection. */
    void (*on_down)(struct redis_conn *conn, const struct fault *fault);
};

struct redis_conn {
    const struct redis_place       *place;
    const struct redis_conn_events *events;
    enum redis_conn_state           state;
    bool                            is_paused; /* set by the owner: nothing is read */

    struct dial          dial;
    struct stream        stream;
    struct redis_reader *reader;
    unsigned             greetings; /* replies to the greeting that are still to come */
    uint64_t             began_ms;
    struct timer         limit; /* of the greeting */
    struct buf           hello; /* the greeting */
    struct buf           out;   /* what the owner wants sent, from `sent` on */
    size_t               sent;
    struct later         flush; /* what one turn adds is written at once */
    struct later         more;  /* reading goes on: a turn has its bound */
};

/* In its owner's memory; nothing is opened yet. */
void redis_conn_init(struct redis_conn *conn, const struct redis_place *place,
                     const struct redis_conn_events *events);
/* From REDIS_CONN_OFF. Down-calls: what comes of it is told later. */
void redis_conn_start(struct redis_conn *conn);
/* Without an event; what was not sent is forgotten. Idempotent. */
void redis_conn_close(struct redis_conn *conn);
/* The same, and told as if the world had done it. From the loop's turn only. */
void redis_conn_fail(struct redis_conn *conn, const struct fault *fault);
void redis_conn_fini(struct redis_conn *conn);

/* To be sent after the greeting, with all else of this turn. False: the bound is reached. */
bool redis_conn_send(struct redis_conn *conn, struct str bytes);
/* Bytes have come that were not looked at yet: a turn has its bound. */
static inline bool redis_conn_has_unread(const struct redis_conn *conn)
{
    return conn->state >= REDIS_CONN_GREETING && conn->stream.can_read;
}
/* After is_paused was cleared. */
void redis_conn_resume(struct redis_conn *conn);

#endif
