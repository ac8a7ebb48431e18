/* data/pg_lease.h - COPY through a lease: bytes both ways, as fast as the slower side. */
#ifndef DATA_PG_LEASE_H
#define DATA_PG_LEASE_H

#include <stddef.h>

#include "base/str.h"
#include "data/pg_wire.h"

struct buf;
struct pg_call;
struct pg_lease;

/* From the done() of a PG_COPY on; as pg_wire_copy_put() and its kin. Of a lease whose connection has
 * gone: BROKEN, -1. WAIT: lease->on_event() tells when. */
enum pg_flow pg_lease_copy_put(struct pg_lease *lease, struct str bytes);
enum pg_flow pg_lease_copy_get(struct pg_lease *lease, struct buf *out, size_t bytes);
int          pg_lease_copy_end(struct pg_lease *lease, struct pg_call *call, const char *error);

#endif
