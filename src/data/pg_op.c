#include "data/pg_op.h"

#include <stdlib.h>

#include "data/pg_call.h"
#include "data/pg_lib.h"
#include "data/pg_wire_impl.h"

struct pg_op *pg_op_head(const struct pg_wire *wire)
{
    return list_is_empty(&wire->ops) ? NULL : container_of(wire->ops.next, struct pg_op, link);
}

struct pg_op *pg_op_new(const struct pg_wire *wire, struct pg_call *call)
{
    struct pg_op *op = calloc(1, sizeof(*op));

    if (!op)
        return NULL;
    op->call    = call;
    op->sent_ns = loop_now_ns(wire->loop);
    list_init(&op->link);
    return op;
}

void pg_op_append(struct pg_wire *wire, struct pg_op *op)
{
    if (wire->depth++ == 0) {
        wire->head_since_ns = op->sent_ns;
        wire->head_bytes    = 0;
    }
    list_append(&wire->ops, &op->link);
    op->cost_us = op->stmt ? pg_stmt_cost_us(op->stmt) : 0;
    wire->load_us += op->cost_us;
    if (op->call) {
        op->call->op = op;
        wire->live++;
    }
}

void pg_op_orphan(struct pg_wire *wire, struct pg_op *op)
{
    if (!op->call)
        return;
    op->call->op = NULL;
    op->call     = NULL;
    wire->live--;
}

void pg_op_free(struct pg_wire *wire, struct pg_op *op)
{
    if (op->stmt)
        pg_stmts_release(&wire->stmts, op->stmt);
    if (op->result)
        wire->lib->clear(op->result);
    if (op->held)
        wire->lib->clear(op->held);
    free(op);
}

void pg_op_take_off(struct pg_wire *wire, struct pg_op *op)
{
    list_remove(&op->link);
    wire->depth--;
    wire->load_us -= op->cost_us;
}
