/* data/redis.h - Redis for one worker: one client for each identity (URL and options), which all VMs of
 * the worker share. Commands of one turn go out in one write on the client's one connection; what
 * must wait at the server, or watch, has one of a few connections of its own (docs/internals/redis.md).
 *
 * While the server is away calls fail at once with `unavailable`; a new connection is tried for with
 * a growing pause. Belongs to the loop's thread. */
#ifndef DATA_REDIS_H
#define DATA_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "data/redis_url.h"

struct dns;
struct err;
struct loop;
struct redis;
struct redis_call;
struct redis_client;
struct redis_place;
struct redis_seat;
struct tls;

/* Zeroed before, since two are compared as bytes. */
struct redis_options {
    struct redis_target target;
    uint64_t            timeout_ms; /* for an answer */
    uint64_t            connect_ms;
    uint32_t            queue; /* calls that may be under way at once, then `busy` */
    uint32_t            pool;  /* connections for what must have one of its own */
};

/* All borrowed; TLS may be NULL. Opens no connection. */
int  redis_open(struct redis **out, struct loop *loop, struct dns *dns, struct tls *tls,
                struct err *err);
void redis_close(struct redis *redis); /* all clients were let go; NULL is fine */

/* Shared by all who ask for the same; each lets it go once. NULL: no memory. */
struct redis_client *redis_client_get(struct redis *redis, const struct redis_options *options);
void                 redis_client_hold(struct redis_client *client); /* one more who lets it go */
/* After the last one's, calls still under way end with `closed`, in the loop's next turn. */
void                      redis_client_let_go(struct redis_client *client);
const struct redis_place *redis_client_place(const struct redis_client *client);
/* NULL at first: for data/redis_bus, which each client has one of. */
void **redis_client_slot(struct redis_client *client);

/* 0: done() will come. -1: CALL->fault says why not, and the call stays the caller's, its seat too. */
int redis_start(struct redis_client *client, struct redis_call *call);
/* Of one that was started and is not done. Its drop() may come at once. */
void redis_cancel(struct redis_client *client, struct redis_call *call);
/* CALL->seat is not wanted any more, and left in whichever state. */
void redis_give_up(struct redis_client *client, struct redis_seat *seat);

/* For metrics. */
struct redis_stats {
    unsigned connections; /* greeted ones; without subscriptions */
    unsigned pending;     /* calls under way */
    uint64_t calls;       /* started, since the start */
    uint64_t lost;        /* connections that the world has ended */
};
void redis_stats(const struct redis *redis, struct redis_stats *out);

#endif
