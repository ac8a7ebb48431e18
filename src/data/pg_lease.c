#include "data/pg_lease.h"

#include "data/pg_call.h"
#include "data/pg_pool.h"

enum pg_flow pg_lease_copy_put(struct pg_lease *lease, struct str bytes)
{
    return lease->seat ? pg_wire_copy_put(&lease->seat->wire, bytes) : PG_FLOW_BROKEN;
}

enum pg_flow pg_lease_copy_get(struct pg_lease *lease, struct buf *out, size_t bytes)
{
    return lease->seat ? pg_wire_copy_get(&lease->seat->wire, out, bytes) : PG_FLOW_BROKEN;
}

int pg_lease_copy_end(struct pg_lease *lease, struct pg_call *call, const char *error)
{
    if (!lease->seat) {
        call->fault = lease->fault;
        return -1;
    }
    call->lease = lease;
    call->pool  = lease->pool;
    call->wire  = &lease->seat->wire;
    return pg_wire_copy_end(call->wire, call, error);
}
