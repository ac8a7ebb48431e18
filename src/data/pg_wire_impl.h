/* data/pg_wire_impl.h - what a wire is made of, for the files that work on it; data/pg_wire.h says what
 * it is for. */
#ifndef DATA_PG_WIRE_IMPL_H
#define DATA_PG_WIRE_IMPL_H

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

struct pg_lib;
struct pg_wire;

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
    struct pg_costs     *costs;     /* the pool's */
};

#endif
