/* client/client_pool.h - the connections of an HTTP client: those that are lent, kept and shared, by origin.
 *
 * Private to client/client*, which stand in this line: client_pool, client_dial (one more connection), client
 * (who wants one, and who waits). Giving one back calls nobody: `serve` looks in the next turn
 * who may have it. */
#ifndef CLIENT_CLIENT_POOL_H
#define CLIENT_CLIENT_POOL_H

#include "base/map.h"
#include "ev/loop.h"
#include "client/client_conn.h"

struct http_client {
    struct loop             *loop;
    struct dns              *dns;
    struct tls_clients      *tls;
    struct client_options    options;
    struct map               origins; /* key -> struct client_origin */
    struct list              idle;    /* client_conn.of_all */
    struct list              queue;   /* client_want.link */
    struct limit_queue       idle_limit;
    struct later             serve;
    struct http_client_stats counts;
};

/* All with one key; lives while somebody wants, holds or keeps one. */
struct client_origin {
    struct list idle;     /* client_conn.of_origin, newest first */
    struct list shared;   /* client_conn.of_shared */
    unsigned    open;     /* connections, also those that are being opened */
    unsigned    dialling; /* of these */
    /* Who may come to share a connection waits for the one that is being opened, unless it is known that
     * there is none to share, or opening failed: then each opens its own. */
    bool     is_unshared;
    unsigned wants;
    unsigned queued; /* of these, in the queue */
    size_t   key_len;
    char     key[];
};

/* The origin of KEY, made if need be. NULL: no memory. */
struct client_origin *client_pool_origin(struct http_client *client, struct str key);
/* WANT has its connection, or gives it up: an origin that nobody wants, holds or keeps one of goes. */
void client_pool_leave(struct client_want *want);

/* FD is taken, also on failure: NULL, no memory. It is counted as open by who dials. */
struct client_conn *client_pool_new(struct http_client *client, struct client_origin *origin,
                                    int fd);
/* One that was never lent; NULL is fine. */
void client_pool_free(struct client_conn *conn);
/* It speaks HTTP/2, EVENTS are those of its streams: it may be lent to many. Who made it is the first. */
bool client_pool_share(struct client_conn *conn, const struct h2_client_events *events);

/* One that is there, which is lent then; NULL: none. FRESH: one with calls under way. */
struct client_conn *client_pool_take_shared(struct client_origin *origin, bool fresh);
struct client_conn *client_pool_take_idle(struct client_origin *origin);
/* Room for one more of ORIGIN, if need be in the place of idle ones. */
bool client_pool_make_room(struct http_client *client, struct client_origin *origin);

void client_pool_on_idle_limit(struct limit *limit);
void client_pool_close_idle(struct http_client *client); /* all of them */

#endif
