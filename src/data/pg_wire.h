/* data/pg_wire.h - one connection to a PostgreSQL server: statements go out as they come, each with
 * a Sync of its own, and their results come back in the same order.
 *
 * What is on its way is an *op*. An op whose call was cancelled is orphaned: its result is read and
 * dropped, so no answer ever reaches another's question. Scripts and COPY speak the simple
 * protocol, outside of the pipeline, and need the wire to themselves. Who may use which wire when is
 * the pool's business. */
#ifndef DATA_PG_WIRE_H
#define DATA_PG_WIRE_H

#include "data/pg_wire_impl.h"

struct pg_call;

enum {
    PG_WIRE_DEPTH_MAX = 128, /* ops on their way */
    /* A TLS record fills libpq's buffer twice, and the socket does not tell of the rest. */
    PG_TLS_ROUNDS = 2,
};

/* Zeroed memory with hooks, arg, own_types and costs set. Connects, without waiting. */
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

/* Every live call ends with FAULT (NULL: what libpq says), and on_broken() follows, in the next
 * round of the turn. */
void pg_wire_break(struct pg_wire *wire, const struct fault *fault);

/* For data/pg_copy.c. False: broken. */
bool pg_wire_flush(struct pg_wire *wire);
/* Bytes that wait in the socket. */
size_t pg_wire_unread(const struct pg_wire *wire);

#endif
