/* data/pg_op.h - what is on its way on a wire: one statement, or one exchange of the simple protocol. */
#ifndef DATA_PG_OP_H
#define DATA_PG_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "data/fault.h"

struct pg_call;
struct pg_result;
struct pg_stmt;
struct pg_wire;

enum pg_step {
    /* What of an op has no answer yet, in the order in which it comes. */
    STEP_PREPARE  = 1,
    STEP_DESCRIBE = 2,
    STEP_EXECUTE  = 4,
};

struct pg_op {
    struct list       link;
    struct pg_call   *call; /* NULL: nobody waits */
    struct pg_stmt   *stmt; /* NULL: not prepared */
    unsigned          steps;
    unsigned          cost_us;
    uint64_t          sent_ns;
    bool              describes; /* only that */
    bool              simple;
    bool              stale; /* the server knows another plan for it, or none */
    bool              too_large;
    struct fault      fault;
    struct pg_result *result;
    struct pg_result *held; /* the call's own, while this op asks for its types */
};

/* NULL: no memory. */
struct pg_op *pg_op_new(const struct pg_wire *wire, struct pg_call *call);
/* It is on its way, behind the others. */
void pg_op_append(struct pg_wire *wire, struct pg_op *op);
/* The oldest one; NULL: none. */
struct pg_op *pg_op_head(const struct pg_wire *wire);
/* Nobody waits for it any more. */
void pg_op_orphan(struct pg_wire *wire, struct pg_op *op);
void pg_op_take_off(struct pg_wire *wire, struct pg_op *op);
void pg_op_free(struct pg_wire *wire, struct pg_op *op);

#endif
