#include "data/pg_copy.h"

#include "base/buf.h"
#include "data/pg_call.h"
#include "data/pg_lib.h"
#include "data/pg_op.h"
#include "data/pg_pool.h"
#include "data/pg_wire.h"

/* putCopyData() buffers without a bound: what is unsent is ours to look at. */
static enum pg_flow put(struct pg_wire *wire, struct str bytes)
{
    if (wire->state != PG_WIRE_READY)
        return PG_FLOW_BROKEN;
    if (wire->lib->putCopyData(wire->pq, bytes.at, (int)bytes.len) != 1)
        return PG_FLOW_END;
    if (!pg_wire_flush(wire)) {
        pg_wire_break(wire, NULL);
        return PG_FLOW_BROKEN;
    }
    return wire->unsent ? PG_FLOW_WAIT : PG_FLOW_DONE;
}

/* A piece, after a look into the socket if there is none here. libpq's answers: its length, 0: not
 * yet, -1: the end, -2: an error. */
static int next_piece(struct pg_wire *wire, char **piece)
{
    int rounds = 1 + PG_TLS_ROUNDS;
    int len    = wire->lib->getCopyData(wire->pq, piece, 1);

    while (len == 0 && rounds-- > 0) {
        if (!wire->lib->consumeInput(wire->pq))
            return -2;
        len = wire->lib->getCopyData(wire->pq, piece, 1);
        if (pg_wire_unread(wire) > 0)
            rounds = 1 + PG_TLS_ROUNDS;
    }
    return len;
}

static enum pg_flow get(struct pg_wire *wire, struct buf *out, size_t bytes)
{
    char *piece;
    int   len = 0;

    if (wire->state != PG_WIRE_READY)
        return PG_FLOW_BROKEN;
    while (out->len < bytes && (len = next_piece(wire, &piece)) > 0) {
        buf_add(out, piece, (size_t)len);
        wire->lib->freemem(piece);
    }
    if (len == -2 && wire->lib->status(wire->pq) != CONNECTION_OK) {
        pg_wire_break(wire, NULL);
        return PG_FLOW_BROKEN;
    }
    if (out->len > 0)
        return PG_FLOW_DONE;
    return len == 0 ? PG_FLOW_WAIT : PG_FLOW_END;
}

/* After an error of the server's there is no COPY to end any more, but its results are there. */
static int end(struct pg_wire *wire, struct pg_call *call, const char *error)
{
    struct pg_op *op;

    if (wire->state == PG_WIRE_READY && !wire->copying)
        return fault_set(&call->fault, "sql", "this statement copies nothing to or from the app");
    op = wire->state == PG_WIRE_READY ? pg_op_new(wire, call) : NULL;
    if (!op) {
        call->fault = wire->fault;
        return -1;
    }
    if (!wire->copying_out)
        wire->lib->putCopyEnd(wire->pq, error);
    wire->copying = false;
    op->simple    = true;
    op->steps     = STEP_EXECUTE;
    pg_op_append(wire, op);
    if (!pg_wire_flush(wire))
        pg_wire_break(wire, NULL);
    else
        loop_later(wire->loop, &wire->resume);
    return 0;
}

/* --- through a lease ------------------------------------------------------------------------- */

/* The seat goes in the turn; why is known already. */
static enum pg_flow told(struct pg_lease *lease, enum pg_flow flow)
{
    if (flow == PG_FLOW_BROKEN)
        lease->fault = lease->seat->wire.fault;
    return flow;
}

enum pg_flow pg_copy_put(struct pg_lease *lease, struct str bytes)
{
    return lease->seat ? told(lease, put(&lease->seat->wire, bytes)) : PG_FLOW_BROKEN;
}

enum pg_flow pg_copy_get(struct pg_lease *lease, struct buf *out, size_t bytes)
{
    return lease->seat ? told(lease, get(&lease->seat->wire, out, bytes)) : PG_FLOW_BROKEN;
}

int pg_copy_end(struct pg_lease *lease, struct pg_call *call, const char *error)
{
    if (!lease->seat) {
        call->fault = lease->fault;
        return -1;
    }
    call->lease = lease;
    call->pool  = lease->pool;
    call->wire  = &lease->seat->wire;
    return end(call->wire, call, error);
}
