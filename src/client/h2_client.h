/* client/h2_client.h - the client's side of an HTTP/2 connection, from bytes to bytes (RFC 9113): requests
 * go out as streams, events tell what becomes of each. It knows no socket, no time limit, no Lua.
 *
 *     h2_client_request()   a stream, in its owner's memory
 *     h2_client_feed()      bytes that came; events come from within
 *     h2_client_produce()   bytes to send, as long as it gives any; events may come from within
 *
 * Both are called from the loop's turn alone, so events go up from there. What is called from an event
 * or from above sets state, and what it has to say lies ready for h2_client_produce().
 *
 * A stream ends with exactly one of on_end() and on_fault(), or with h2_client_cancel(); it is no
 * longer known here when that is called, and the memory may be used for another.
 *
 * Flow control: the connection's window is open always, since what may lie unread is bounded by the
 * windows of its streams; a stream's opens by what its owner has taken. */
#ifndef CLIENT_H2_CLIENT_H
#define CLIENT_H2_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "client/h2_client_stream.h"

struct err;
struct field;
struct h2_client;

struct h2_memory;

struct h2_client_options {
    unsigned          streams; /* at once, if the server allows as many; 0: H2_CLIENT_STREAMS_MAX */
    uint32_t          window;  /* 0: H2_CLIENT_WINDOW */
    struct h2_memory *memory;  /* borrowed; NULL: malloc()'s alone */
    bool              takes_all; /* what comes is taken as it comes: no call of h2_client_take() */
};

/* EVENTS is borrowed. 0 or ERR_MEMORY. The preface lies ready. */
int  h2_client_open(struct h2_client **out, const struct h2_client_options *options,
                    const struct h2_client_events *events, struct err *err);
void h2_client_close(
    struct h2_client *client); /* not from an event; streams hear nothing. NULL is fine */

/* False: the connection is of no more use; why() says what is wrong with it. */
bool   h2_client_feed(struct h2_client *client, const char *bytes, size_t len);
size_t h2_client_produce(struct h2_client *client, char *to, size_t room);
/* Each stream that is still open ends by on_fault(LOST), with what is wrong, or UNSEEN. */
void h2_client_lose(struct h2_client *client);

/* The server's settings have come: it speaks HTTP/2, and its limits are known. */
bool h2_client_is_ready(const struct h2_client *client);
/* No more streams from now on: the server said so, it broke the protocol, or numbers are used up. */
bool h2_client_is_leaving(const struct h2_client *client);
/* Nothing more comes or goes: time to end the connection. */
bool h2_client_is_over(const struct h2_client *client);
/* It is over, and what came was not what HTTP/2 allows. */
bool h2_client_is_broken(const struct h2_client *client);
/* What is wrong, as a fixed phrase; NULL: nothing. */
const char *h2_client_why(const struct h2_client *client);

/* Streams that may be opened now. Before the server's settings are there: one in all. */
unsigned h2_client_room(const struct h2_client *client);
unsigned h2_client_under_way(const struct h2_client *client);

struct h2_client_request {
    const struct field *fields; /* names in lower case, ":method" and the like first */
    unsigned            field_count;
    bool                fields_stay; /* until the stream has ended: they are not copied */
    struct str          body;        /* stays until the stream has ended */
    bool                has_more;    /* the body goes on with h2_client_write() */
};

/* STREAM is zeroed or has ended. False: no room, or no memory. */
bool h2_client_request(struct h2_client *client, struct h2_client_stream *stream,
                       const struct h2_client_request *request);
/* How much of DATA was taken; if less than all, on_room() will come. */
size_t h2_client_write(struct h2_client_stream *stream, struct str data);
void   h2_client_end_body(struct h2_client_stream *stream);
/* Its head is in bytes that were produced. */
bool h2_client_is_begun(const struct h2_client_stream *stream);
/* All of the request, its body too, is in bytes that were produced. */
bool h2_client_is_sent(const struct h2_client_stream *stream);
/* So many bytes of on_data() are done with. Also fine for a stream that has ended. */
void h2_client_take(struct h2_client_stream *stream, size_t bytes);
/* The server is told that nobody waits for it. No event comes; nothing happens to one that has ended. */
void h2_client_cancel(struct h2_client_stream *stream);

#endif
