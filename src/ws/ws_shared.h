/* ws/ws_shared.h - what the WebSockets of a worker share: readers that are lent, zlib's states,
 * the encoder, queues of time limits, counts. Opened and closed with the worker. */
#ifndef WS_WS_SHARED_H
#define WS_WS_SHARED_H

#include <stdint.h>

#include "base/list.h"
#include "ev/timer.h"
#include "ws/ws_deflate.h"
#include "ws/ws_due.h"
#include "ws/ws_encode.h"

struct err;
struct loop;
struct ws_reader;

enum {
    WS_CLOSE_MS        = 5000, /* for the peer's close frame, after ours */
    WS_BEATS_MAX       = 16,   /* different lengths of limits at a time */
    WS_READERS_AT_REST = 16,   /* that are kept */
};

/* Limits of one length: of heartbeats, of messages under way. */
struct ws_beat {
    struct limit_queue queue;
    unsigned           sockets; /* that have this length; 0: it is free */
};

/* Counted since it was opened. */
struct ws_counts {
    uint64_t sockets; /* open now */
    uint64_t lent;    /* readers, now: of sockets that stand inside of a message */
    uint64_t messages_in;
    uint64_t messages_out;
    uint64_t encoded;  /* frames made for sending, whoever got them */
    uint64_t deflated; /* messages compressed, whoever got them */
};

struct ws_shared {
    struct loop       *loop;
    struct ws_encoder  encoder;
    struct ws_deflater deflater;
    struct list        readers; /* at rest */
    unsigned           reader_count;
    struct limit_queue closings;
    struct ws_beat     beats[WS_BEATS_MAX];
    struct ws_counts   counts;
};

/* 0 or ERR_MEMORY. */
int  ws_shared_open(struct ws_shared **out, struct loop *loop, struct err *err);
void ws_shared_close(struct ws_shared *shared); /* no socket any more; NULL is fine */

struct ws_counts ws_shared_counts(const struct ws_shared *shared);

/* --- for ws/ws ------------------------------------------------------------------------------------- */

struct ws_reader *ws_shared_lend(struct ws_shared *shared); /* NULL: no memory */
/* READER is given back at rest, or freed. */
void ws_shared_take_back(struct ws_shared *shared, struct ws_reader *reader);

/* The queue of limits of MS, or of the length next to it if there are too many. NULL for 0. Each call
 * is undone by one of the other. */
struct ws_beat *ws_shared_beat(struct ws_shared *shared, uint64_t ms);
void            ws_shared_drop_beat(struct ws_beat *beat); /* NULL is fine */

#endif
