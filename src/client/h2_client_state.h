/* client/h2_client_state.h - what a connection of client/h2_client.h is made of, and how its streams end; for its own
 * files alone. */
#ifndef CLIENT_H2_CLIENT_STATE_H
#define CLIENT_H2_CLIENT_STATE_H

#include <nghttp2/nghttp2.h>

#include "client/h2_client_stream.h"

struct h2_client {
    nghttp2_session               *session;
    const struct h2_client_events *events;
    struct list                    streams; /* h2_client_stream.link: all that are open */
    struct list                    rooms;   /* h2_client_stream.room: to be told of it */
    unsigned                       under_way;
    unsigned                       streams_max; /* ours */
    unsigned                       limit;       /* the server's and ours */
    bool                           is_ready, is_dead;
    bool                           takes_all;
    struct str                     rest;       /* the library's: not produced yet */
    struct buf                     pairs;      /* a request's fields as the library wants them */
    bool                           is_left;    /* by the server: GOAWAY has come */
    const char                    *goaway_why; /* NULL: in peace */
    const char *
        invalid_why; /* of the last frame that broke the rules, of a stream that is gone or of none */
};

/* NULL: it has none, or nobody waits for it any more. */
struct h2_client_stream *h2_client_state_find(struct h2_client *client, int32_t id);

/* Its memory is its owner's again; no event. */
void h2_client_state_forget(struct h2_client_stream *stream);
/* With the event. TEXT counts if no reason is known already. */
void h2_client_state_end(struct h2_client_stream *stream);
void h2_client_state_fail(struct h2_client_stream *stream, enum h2_client_fault fault,
                          const char *text);

#endif
