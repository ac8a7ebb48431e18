/* data/redis_call.h - what is asked of Redis: one command, or several that stand side by side, and
 * what came of it. Made by bind/, in the hands of data/redis from redis_start() on. */
#ifndef DATA_REDIS_CALL_H
#define DATA_REDIS_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "data/fault.h"

struct redis_pipe;
struct redis_seat;

enum {
    REDIS_REQUEST_BYTES_MAX = 64 * 1024 * 1024,
};

struct redis_call {
    /* --- set before redis_start(); `done` and `drop` too */
    struct buf request; /* data/redis_command.h */
    unsigned   replies; /* commands in it: so many replies make an answer */
    bool       alone;   /* needs a connection of its own */
    bool       waits;   /* may take as long as it takes: no time limit of ours */
    bool       keeps;   /* with `alone`: the connection stays with the caller, as `seat` */

    /* In: one that an earlier call kept. Out: the one that is kept now, or NULL. */
    struct redis_seat *seat;

    /* --- set when done() runs */
    struct buf   reply; /* data/redis_reply.h: all replies, one after the other */
    struct fault fault; /* the world's; what Redis itself refused stands in `reply` */

    /* The answer is there. From the loop's turn; the call is the caller's again. */
    void (*done)(struct redis_call *call);
    /* After redis_cancel(): nobody else names it any more, free it. */
    void (*drop)(struct redis_call *call);

    /* --- data/redis' own */
    struct list        link;
    struct redis_pipe *pipe; /* NULL: it waits for a connection, or is not started */
    uint64_t           due_ms;
    bool               is_orphan; /* its replies are read, and dropped */
};

static inline void redis_call_init(struct redis_call *call)
{
    *call = (struct redis_call){ .replies = 1 };
    buf_init(&call->request, REDIS_REQUEST_BYTES_MAX);
    buf_init(&call->reply, REDIS_REQUEST_BYTES_MAX);
    list_init(&call->link);
}

static inline void redis_call_fini(struct redis_call *call)
{
    buf_fini(&call->request);
    buf_fini(&call->reply);
}

/* Its last act for data/redis: done(), or drop() of one that nobody waits for. */
static inline void redis_call_end(struct redis_call *call)
{
    call->pipe = NULL;
    if (call->is_orphan)
        call->drop(call);
    else
        call->done(call);
}

#endif
