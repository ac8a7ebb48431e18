/* data/pg_wire.h - one connection to a PostgreSQL server: statements go out as they come, each with
 * a Sync of its own, and their results come back in the same order.
 *
 * What is on its way is an *op*. An op whose call was cancelled is orphaned: its result is read and
 * dropped, so no answer ever reaches another's question. Scripts and COPY speak the simple
 * protocol, outside of the pipeline, and need the wire to themselves. Who may use which wire when is
 * the pool's business. */
#ifndef DATA_PG_WIRE_H
#define DATA_PG_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "data/fault.h"
#include "data/pg_connect.h"
#include "data/pg_params.h"
#include "data/pg_rows.h"
#include "data/pg_stmts.h"
#include "data/pg_types.h"
#include "ev/loop.h"

struct buf;
struct pg_call;
struct pg_lib;
struct pg_wire;

enum { PG_WIRE_DEPTH_MAX = 128 }; /* ops on their way */

/* All from the loop's turn. */
struct pg_wire_hooks {
    void (*on_ready)(struct pg_wire *wire);
    /* The wire is dead, its calls have been told; `fault` says why. May close it. */
    void (*on_broken)(struct pg_wire *wire);
    void (*on_room)(struct pg_wire *wire);                                      /* an op is over */
    void (*on_note)(struct pg_wire *wire, struct str channel, struct str text); /* NOTIFY */
    void (*on_flow)(struct pg_wire *wire); /* COPY: can be written or read again */
};

enum pg_wire_state { PG_WIRE_CONNECTING, PG_WIRE_READY, PG_WIRE_BROKEN };

struct pg_wire {
    const struct pg_lib        *lib;
    struct loop                *loop;
    const struct pg_wire_hooks *hooks;
    void                       *arg; /* the hooks' */
    struct pg_connect           connect;
    struct pg_conn             *pq; /* owned; NULL while connecting */
    struct io                   io;
    struct later                flush;
    struct later                breaking; /* found broken in a down-call: told from the turn */
    enum pg_wire_state          state;
    struct fault                fault;  /* once BROKEN */
    bool                        unsent; /* libpq has bytes that the socket did not take */

    struct list          ops; /* oldest first */
    unsigned             depth;
    unsigned             live;          /* ops whose call is still there */
    uint64_t             load_us;       /* what the ops will take, about */
    uint64_t             head_since_ns; /* the oldest one is the server's since then */
    uint64_t             head_bytes;    /* that have come for it */
    bool                 simple;        /* outside of the pipeline: COPY or a script */
    bool                 copying;       /* data may flow */
    bool                 copying_out;   /* towards us: it is read when it is asked for */
    struct later         resume;        /* looks for results that are here already */
    struct pg_stmts      stmts;
    struct pg_params     params;
    struct pg_own_types *own_types; /* the pool's */
};

/* Zeroed memory with hooks, arg and own_types set. Connects, without waiting. */
void pg_wire_open(struct pg_wire *wire, const struct pg_lib *lib, const struct pg_url *url,
                  struct dns *dns, struct loop *loop, uint64_t statement_ms);
/* What is on its way is forgotten: no call may be live. */
void pg_wire_close(struct pg_wire *wire);

/* READY, and depth < PG_WIRE_DEPTH_MAX. 0: call->done() will come. -1: call->fault. */
int pg_wire_send(struct pg_wire *wire, struct pg_call *call);
/* CALL, which is on its way, is not interested any more. */
void pg_wire_orphan(struct pg_wire *wire, struct pg_call *call);
/* A statement that nobody waits for. */
void pg_wire_post(struct pg_wire *wire, const char *sql);

/* Nothing on its way, and no transaction open. */
bool pg_wire_is_clean(const struct pg_wire *wire);

/* Every live call ends with FAULT, and on_broken() follows, in the next round of the turn. */
void pg_wire_break(struct pg_wire *wire, const struct fault *fault);

/* --- COPY: from the done() of a PG_COPY on ----------------------------------------------------- */

enum pg_flow { PG_FLOW_DONE, PG_FLOW_WAIT, PG_FLOW_END, PG_FLOW_BROKEN };

/* BYTES were taken. WAIT: no more before on_flow(). END: the server takes no more; how it ended is
 * told by pg_wire_copy_end(). */
enum pg_flow pg_wire_copy_put(struct pg_wire *wire, struct str bytes);
/* Appends what has come, up to about BYTES. WAIT: nothing yet, on_flow() tells. END: that was all. */
enum pg_flow pg_wire_copy_get(struct pg_wire *wire, struct buf *out, size_t bytes);
/* Ends a COPY, with an error of ours or NULL. 0: the outcome comes as that of CALL; -1:
 * call->fault. */
int pg_wire_copy_end(struct pg_wire *wire, struct pg_call *call, const char *error);

#endif
