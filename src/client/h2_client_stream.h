/* client/h2_client_stream.h - a stream of client/h2_client.h: a request and its response, and what its owner is
 * told of it. */
#ifndef CLIENT_H2_CLIENT_STREAM_H
#define CLIENT_H2_CLIENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"

struct h2_client;

enum {
    H2_CLIENT_STREAMS_MAX    = 1000,
    H2_CLIENT_WINDOW         = 256 * 1024, /* of a stream: bytes that its owner has not taken */
    H2_CLIENT_OUT_BYTES_MAX  = 64 * 1024,  /* of a streamed body, written and not yet sent */
    H2_CLIENT_HEAD_BYTES_MAX = 64 * 1024,  /* of a response's head; of its trailers */
    H2_CLIENT_FIELDS_MAX     = 256,
    H2_CLIENT_INTERIM_MAX    = 16, /* 1xx responses before the one that counts */
};

enum h2_client_fault {
    H2_CLIENT_UNSEEN, /* the server says that it did nothing with it: any request may be sent again */
    H2_CLIENT_H1,     /* the same: the server wants it in HTTP/1.1 */
    H2_CLIENT_RESET,  /* the server gave it up */
    H2_CLIENT_BROKEN, /* the response is malformed or larger than it may be; it was cancelled */
    H2_CLIENT_LOST,   /* the connection ended: h2_client_lose() */
};

struct h2_client_stream {
    struct h2_client *client; /* NULL: no stream, zeroed memory */
    unsigned          status; /* of the response, once on_head() came */
    const char       *fault;  /* with on_fault(): a fixed phrase */

    /* Private. */
    struct list link;
    int32_t     id;
    uint32_t    fields, field_bytes; /* of the head or the trailers that are coming in */
    uint8_t     interims;
    bool        has_head;
    bool        was_reset;   /* by the server */
    bool        body_is_all; /* nothing comes behind `body` and `out` */
    bool        body_is_out; /* in bytes that were produced */
    bool        starves;     /* the library waits for more of the body */
    bool        wants_room;  /* h2_client_write() took less than it was given */
    struct list room;        /* in the line of those to be told */
    struct str  body;
    struct buf  out;
};

struct h2_client_events {
    /* Of the head and, behind on_head(), of the trailers; without ":status". The spans go. May be NULL. */
    void (*on_field)(struct h2_client_stream *stream, struct str name, struct str value);
    void (*on_head)(struct h2_client_stream *stream); /* the response that counts */
    /* Bytes of the body, which count against the window until h2_client_take(). */
    void (*on_data)(struct h2_client_stream *stream, struct str piece);
    /* The request went on: h2_client_write() may take more, what it took has gone out, or all has. May be
     * NULL. */
    void (*on_room)(struct h2_client_stream *stream);
    void (*on_end)(struct h2_client_stream *stream); /* the response is whole */
    void (*on_fault)(struct h2_client_stream *stream, enum h2_client_fault fault);
};

#endif
