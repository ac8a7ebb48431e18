/* data/redis_pipe.h - calls on one connection: sent in their order, each gets its replies in that
 * order, and the oldest may not wait for ever. For data/redis*.c. */
#ifndef DATA_REDIS_PIPE_H
#define DATA_REDIS_PIPE_H

#include <stdbool.h>

#include "base/list.h"
#include "data/redis_conn.h"
#include "ev/timer.h"

struct fault;
struct redis_call;
struct redis_pipe;

#define REDIS_NEVER UINT64_MAX

struct redis_pipe_events {
    void (*on_ready)(struct redis_pipe *pipe); /* may be NULL */
    /* CALL has its replies, and comes to its end next. May be NULL. */
    void (*on_answer)(struct redis_pipe *pipe, struct redis_call *call);
    /* All calls have come to their end with a fault. May free the pipe. */
    void (*on_down)(struct redis_pipe *pipe, const struct fault *fault);
};

struct redis_pipe {
    struct redis_conn               conn;
    const struct redis_pipe_events *events;
    struct list                     calls; /* whose replies are to come, oldest first */
    unsigned                        count;
    struct timer                    overdue;
};

void redis_pipe_init(struct redis_pipe *pipe, const struct redis_place *place,
                     const struct redis_pipe_events *events);
/* Orphans are dropped; no other call may be there. */
void redis_pipe_fini(struct redis_pipe *pipe);

/* Starts the connection if there is none. CALL->due_ms is set. False: too much is unsent. */
bool redis_pipe_send(struct redis_pipe *pipe, struct redis_call *call);
/* All calls end with FAULT, from the loop's turn; the connection is closed, on_down() does not come. */
void redis_pipe_end(struct redis_pipe *pipe, const struct fault *fault);
/* The same as a down-call: the calls are orphans all. */
void redis_pipe_close(struct redis_pipe *pipe);

#endif
