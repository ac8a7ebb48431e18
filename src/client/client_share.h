/* client/client_share.h - a connection of HTTP/2 that calls share: bytes between its socket and client/h2_client.
 *
 * Whoever asks a stream to say something touches the share; all that was said in a turn goes out with
 * its end, so events come from the loop's turn alone. */
#ifndef CLIENT_CLIENT_SHARE_H
#define CLIENT_CLIENT_SHARE_H

#include <stdbool.h>

#include "base/buf.h"
#include "ev/loop.h"
#include "client/h2_client.h"

struct err;
struct stream;

enum {
    CLIENT_SHARE_READS_MAX = 8, /* in one turn: others are there too */
    /* That come while nobody asks for anything: more than was on its way to those who have given up. */
    CLIENT_SHARE_UNASKED_MAX = 16 * 1024 * 1024,
};

struct client_share {
    struct h2_client *session;
    struct stream    *stream; /* borrowed */
    struct loop      *loop;
    unsigned          users; /* calls that hold it, also those whose stream has ended */
    uint64_t          heard; /* bytes that have come */
    bool              is_lost;
    bool              is_left; /* by us: no other call shall come to it */

    /* From the turn, as its last act: there may be room, or the end has come. May free it. */
    void (*on_change)(struct client_share *share);
    void *arg;

    /* Private. */
    struct later turn;
    struct buf   out;
    size_t       sent;    /* of `out` */
    size_t       unasked; /* of what was heard: since the last of the users left */
};

/* EVENTS are those of its streams. 0 or ERR_MEMORY. */
int  client_share_open(struct client_share **out, struct stream *stream, struct loop *loop,
                       const struct h2_client_events *events, struct err *err);
void client_share_close(struct client_share *share); /* its streams hear nothing; NULL is fine */

void client_share_on_event(struct client_share *share); /* the stream's */
void client_share_touch(struct client_share *share);
/* Takes what has come for nobody: of a share without users. False: it has ended. */
bool client_share_look(struct client_share *share);

/* Another call may have a stream now. */
bool client_share_has_room(const struct client_share *share);
/* How many calls may, the server has not said yet. */
bool client_share_is_new(const struct client_share *share);
/* No other call ever will. */
bool client_share_is_leaving(const struct client_share *share);

#endif
