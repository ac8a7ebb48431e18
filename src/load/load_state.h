/* load/load_state.h - what a thread of a load and its connections are made of, for the files of this floor
 * alone. All of it is the thread's own, but for what is atomic. */
#ifndef LOAD_LOAD_STATE_H
#define LOAD_LOAD_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "ev/timer.h"
#include "http/channel.h"
#include "http/h1_gate.h"
#include "http/h1_skim.h"
#include "http/h2_memory.h"
#include "http/message.h"
#include "ws/ws_handshake.h"
#include "load/load_count.h"
#include "load/load_pace.h"
#include "load/load_plan.h"
#include "load/load_protocol.h"
#include "net/stream.h"

struct h2_client;
struct load_thread;
struct tls;
struct tls_client;
struct ws;
struct ws_shared;

/* A request under way. */
struct load_slot {
    uint64_t planned_ns;
    uint64_t sent_ns;
    unsigned request;
};

/* The body of a response, as far as it was compared. */
struct load_body {
    size_t at;
    bool   differs;
};

enum load_conn_state {
    LOAD_CONN_DOWN, /* comes up again when `retry` fires */
    LOAD_CONN_CONNECTING,
    LOAD_CONN_SHAKING,  /* the handshake of TLS */
    LOAD_CONN_GREETING, /* the protocol waits for the server's first word */
    LOAD_CONN_UP,
    LOAD_CONN_RETIRED, /* has had its share of requests */
};

struct load_h1 {
    struct h1_skim   skim;
    struct load_body body; /* of the response that is read */
};

struct load_h2 {
    struct h2_client *client; /* NULL: it has not begun */
    struct list       under_way;
};

struct load_ws {
    struct ws          *ws; /* NULL: before the end of the handshake, and after its own */
    struct channel      channel;
    struct later        turn;
    struct buf          in;   /* read, not taken */
    size_t              used; /* of it */
    struct buf          copy; /* of a message with ids of its own */
    struct ws_ask       ask;
    struct h1_head_gate gate;
    const char         *why; /* the handshake failed */
    char                refusal[64];
    bool                has_news, is_filling, is_gone;
};

struct load_conn {
    struct stream               stream;
    struct load_thread         *thread;
    const struct load_protocol *protocol;
    struct list                 room; /* in thread->with_room, in an open loop */
    struct timer                retry;
    struct timer                more;     /* goes on reading, behind the other connections */
    struct buf                  out;      /* what the socket did not take */
    size_t                      out_sent; /* of it */
    struct load_slot    *slots; /* a ring of plan->pipelining, of the thread's; NULL with HTTP/2 */
    unsigned             first; /* of those under way: answers come in the order of requests */
    unsigned             under_way;
    unsigned             origin;
    unsigned             step;     /* of the wheel */
    unsigned             failures; /* in a row: connections that were of no use */
    enum load_conn_state state;
    uint64_t             connect_ns; /* when it began to */
    uint64_t             issued;     /* requests, since it came up and ever */
    uint64_t             issued_ever;
    union {
        struct load_h1 h1;
        struct load_h2 h2;
        struct load_ws ws;
    };
};

/* What the threads of a load have in common. */
struct load_shared {
    const struct load_plan *plan;
    uint64_t                start_ns;
    atomic_uint_fast64_t    faults;
    atomic_bool             stopped;

    /* What no connection has ever got over is no fault among others: it ends the load. */
    atomic_bool has_been_up;
    atomic_bool has_failed;
    struct err  failure; /* of who set `has_failed`; to be read when the load is over */
};

struct load_thread {
    struct load_shared *shared;
    unsigned            index;
    struct thread       thread;
    bool                is_started;
    struct loop        *loop;
    struct load_conn   *conns;
    struct load_slot   *slots;   /* of all connections, but with HTTP/2 */
    struct list         streams; /* HTTP/2: that have ended */
    struct h2_memory    h2_memory;
    struct field        fields[LOAD_FIELDS_MAX]; /* of a request that is being made */
    uint64_t            now_ns;                  /* for the events of streams */
    struct tls         *tls;                     /* NULL: no origin has it */
    struct tls_client  *tls_client;
    struct ws_shared   *ws_shared; /* WebSocket */
    unsigned            conn_count, retired;
    uint64_t            under_way; /* on all of them */
    struct list         with_room; /* an open loop's: connections that may send */
    struct load_pace    pace;
    uint64_t            quota; /* requests that may still be sent; UINT64_MAX: no bound */
    uint64_t            next_id;
    struct timer        end, check;
    bool                is_over;
    char               *input, *output;
    struct h1_skim_memo memo;
    struct load_counts  counts;
    _Atomic uint64_t    backlog; /* as it was at the last check */

    void (*on_over)(struct load_thread *thread); /* on this thread, as its last act */
    void *arg;
};

enum { LOAD_INPUT_BYTES = 64 * 1024, LOAD_OUTPUT_BYTES = 64 * 1024 };

static inline const struct load_plan *load_plan_of(const struct load_conn *conn)
{
    return conn->thread->shared->plan;
}

/* The request that is INDEX behind the oldest under way. */
static inline struct load_slot *load_slot_at(const struct load_conn *conn, unsigned index)
{
    return &conn->slots[(conn->first + index) % load_plan_of(conn)->pipelining];
}

/* The oldest was answered. */
static inline struct load_slot load_slot_take(struct load_conn *conn)
{
    struct load_slot slot = *load_slot_at(conn, 0);

    conn->first = (conn->first + 1) % load_plan_of(conn)->pipelining;
    return slot;
}

/* Those behind it wait for it. */
static inline bool load_slot_is_late(const struct load_conn *conn, uint64_t late_ns)
{
    return conn->under_way > 0 && load_slot_at(conn, 0)->sent_ns < late_ns;
}

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
