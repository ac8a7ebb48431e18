/* http/h2_state.h - what HTTP/2 keeps: of a worker, of a connection, of a stream. Private to the files
 * of the server's side, which stand in this line, each calling those before it alone:
 *
 *     h2_guard h2_memory            what is counted, what nghttp2 lives on
 *     h2_head h2_fields             what is read and written; they know no connection
 *     h2_send                       frames out: heads, DATA, resets
 *     h2_wire h2_channel            what the work asks for
 *     h2_stream                     a stream's life, what its work is told
 *     h2_events                     what nghttp2 tells of frames in and out
 *     h2                            the connection's turn, its beginning and end */
#ifndef HTTP_H2_STATE_H
#define HTTP_H2_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "ev/timer.h"
#include "http/exchange.h"
#include "http/h1_gate.h"
#include "http/h2_fields.h"
#include "http/h2_guard.h"
#include "http/h2_head.h"
#include "http/h2_memory.h"

struct conn;
struct h2_channel;
struct nghttp2_option;
struct nghttp2_session;
struct nghttp2_session_callbacks;

enum {
    /* Of answers' bodies, copied and not sent, in all streams of a connection: from here on each stream
     * may add but a little, */
    H2_KEPT_BYTES   = 512 * 1024,
    H2_CROWDED_ROOM = 4 * 1024,
    /* and from here on no request is begun. */
    H2_KEPT_BYTES_MAX = 4 * 1024 * 1024,
};

/* What the connections of a worker share. In http_server.h2; made with the first of them. */
struct h2_shared {
    struct nghttp2_session_callbacks *callbacks;
    struct nghttp2_option            *option;
    struct h2_memory                  memory; /* for the sessions */
    struct limit_queue                ticks;
};

/* A connection. */
struct h2 {
    struct conn            *conn; /* NULL: it has gone, and exchanges that are worked on keep us */
    struct nghttp2_session *session; /* owned */
    struct list             streams; /* open: neither answered nor lost */
    struct list     heads;    /* of these, by `turn`: complete, the dispatcher has not seen them */
    struct list     news;     /* of these, by `turn`: their work is to be told something */
    struct list     answered; /* ended, but not written to their last byte; oldest first */
    unsigned        started;  /* exchanges that were dispatched and are not freed */
    uint64_t        kept;     /* bytes in the streams' `out` */
    struct h2_guard guard;

    struct h2_head    head;      /* the block that is coming in */
    struct h2_stream *head_of;   /* its stream; NULL: there is none */
    uint64_t          head_ms;   /* when it began */
    uint64_t          notice_ms; /* when the client was told that the server will go */

    int32_t last_id;  /* the latest that the client has opened */
    int32_t reset_id; /* the latest that we have reset: what comes for it may be from before */

    /* What ends the connection, as the events found it. */
    uint32_t    fault_code;
    const char *fault; /* NULL: nothing */

    struct limit tick;      /* while streams are open: who is late? */
    bool         ready : 1; /* the client's SETTINGS have come */
    bool         noticed : 1;
    bool         notice_seen : 1; /* the client has answered the PING behind it */
    bool         left : 1;   /* the last GOAWAY was said: no new stream is looked at any more */
    bool         broken : 1; /* nothing can be read any more */
};

/* A stream, in its exchange's arena. */
struct h2_stream {
    struct exchange *ex;
    struct h2       *h2;
    struct list      link; /* in h2->streams, or h2->answered */
    struct list      turn;
    int32_t          id;

    uint64_t        given_back; /* of ex->body_bytes: the client may send as much anew */
    struct h1_fault fault;      /* why the wire answers by itself */

    /* The answer's body, in the order in which it goes out. */
    struct str       whole; /* in the arena: all of it, if it is small */
    struct buf       out;
    size_t           out_used; /* of it, from the front */
    int              file_fd;  /* -1, or owned */
    off_t            file_at;
    uint64_t         file_left;
    struct h2_fields trailers;
    uint64_t         left;   /* ANSWER_LENGTH_UNKNOWN, or what the work has still to bring */
    size_t           unseen; /* bytes of a body that is not sent, since its writer waited */
    uint64_t         framed; /* bytes of body that were put into frames */
    uint64_t         mark;   /* position in the connection's output at which the answer ends */

    struct h2_channel *channel; /* the answer was an upgrade to this; owned */

    /* For h2_stream_tick(): what was there when it last looked, and since when no more has come. */
    uint64_t seen_in, seen_out;
    uint64_t in_since_ms, out_since_ms;

    bool dispatched : 1;
    bool tunnel : 1;    /* asked for by CONNECT: DATA is the channel's, a 2xx would open it */
    bool continued : 1; /* 100 Continue was sent, or is not waited for */
    bool has_data : 1;  /* on_body() is due */
    bool has_end : 1;   /* on_body_end() is due */
    bool wants_room : 1;
    bool complete : 1;   /* nothing comes behind what is there of the body */
    bool starved : 1;    /* nghttp2 waits to be told of more to send */
    bool said_end : 1;   /* END_STREAM has gone to the output */
    bool cut_due : 1;    /* it will be reset, behind what is written */
    bool cut : 1;        /* we have reset it */
    bool closed : 1;     /* nghttp2 has closed it: no frame goes out any more */
    bool peer_ended : 1; /* END_STREAM has come */
    bool told_sent : 1;
};

/* What the work is to hear is told in the connection's turn (h2_stream.h). */
static inline void h2_stream_has_news(struct h2_stream *stream)
{
    if (!list_is_linked(&stream->turn))
        list_append(&stream->h2->news, &stream->turn);
}

/* Nobody hears an answer any more. One that had been said to its end is another matter: its work may be
 * at it still, as with a body that HEAD does not want. */
static inline bool h2_stream_is_dead(const struct h2_stream *stream)
{
    return stream->closed && !stream->said_end;
}

static inline struct h2_stream *h2_stream_of(const struct exchange *ex)
{
    return ex->wire_data;
}

#endif
