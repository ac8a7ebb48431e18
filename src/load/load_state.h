/* load/load_state.h - what a thread of a load and its connections are made of, for load_conn and
 * load_thread alone. All of it is the thread's own, but for what is atomic. */
#ifndef LOAD_LOAD_STATE_H
#define LOAD_LOAD_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "ev/timer.h"
#include "http/h1_skim.h"
#include "load/load_count.h"
#include "load/load_pace.h"
#include "load/load_plan.h"
#include "net/stream.h"

struct load_thread;

/* A request under way. */
struct load_slot {
    uint64_t planned_ns;
    uint64_t sent_ns;
    unsigned request;
};

enum load_conn_state {
    LOAD_CONN_DOWN, /* comes up again when `retry` fires */
    LOAD_CONN_CONNECTING,
    LOAD_CONN_UP,
    LOAD_CONN_RETIRED, /* has had its share of requests */
};

struct load_conn {
    struct stream        stream;
    struct load_thread  *thread;
    struct list          room; /* in thread->with_room, in an open loop */
    struct timer         retry;
    struct timer         more; /* goes on reading, behind the other connections */
    struct h1_skim       skim;
    struct buf           out;      /* what the socket did not take */
    size_t               out_sent; /* of it */
    struct load_slot    *slots;    /* a ring of plan->pipelining */
    unsigned             first, under_way;
    unsigned             origin;
    unsigned             step;     /* of the wheel */
    unsigned             failures; /* in a row: connections that were of no use */
    enum load_conn_state state;
    uint64_t             connect_ns; /* when it began to */
    uint64_t             issued;     /* requests, since it came up and ever */
    uint64_t             issued_ever;
    size_t               body_at; /* of the response that is read: as far as it was compared */
    bool                 body_differs;
};

/* What the threads of a load have in common. */
struct load_shared {
    const struct load_plan *plan;
    uint64_t                start_ns;
    atomic_uint_fast64_t    faults;
    atomic_bool             stopped;
};

struct load_thread {
    struct load_shared *shared;
    unsigned            index;
    struct thread       thread;
    bool                is_started;
    struct loop        *loop;
    struct load_conn   *conns;
    struct load_slot   *slots; /* of all connections */
    unsigned            conn_count, retired;
    uint64_t            under_way; /* on all of them */
    struct list         with_room; /* an open loop's: connections that may send */
    struct load_pace    pace;
    uint64_t            quota; /* requests that may still be sent; UINT64_MAX: no bound */
    uint64_t            next_id;
    struct timer        end, check;
    bool                is_over;
    char               *input;
    struct h1_skim_memo memo;
    struct load_counts  counts;
    _Atomic uint64_t    backlog; /* as it was at the last check */

    void (*on_over)(struct load_thread *thread); /* on this thread, as its last act */
    void *arg;
};

enum { LOAD_INPUT_BYTES = 64 * 1024 };

static inline void load_out_drop(struct load_conn *conn)
{
    buf_clear(&conn->out);
    conn->out_sent = 0;
}

static inline bool load_thread_is_done(const struct load_thread *thread)
{
    return (thread->quota == 0 && thread->under_way == 0) || thread->retired == thread->conn_count;
}

/* Behind this turn of its loop. */
static inline void load_thread_end(struct load_thread *thread)
{
    thread->is_over = true;
    loop_break(thread->loop);
}

#endif
