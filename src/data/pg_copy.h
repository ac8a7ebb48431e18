/* data/pg_copy.h - COPY through a lease: bytes both ways, as fast as the slower side. */
#ifndef DATA_PG_COPY_H
#define DATA_PG_COPY_H

#include <stddef.h>

#include "base/str.h"

struct buf;
struct pg_call;
struct pg_lease;

enum pg_flow { PG_FLOW_DONE, PG_FLOW_WAIT, PG_FLOW_END, PG_FLOW_BROKEN };

/* All from the done() of a PG_COPY on. BROKEN: the lease's connection has gone, and its fault says why.
 *
 * BYTES were taken. WAIT: no more before lease->on_event(). END: the server takes no more; how it
 * ended is told by pg_copy_end(). */
enum pg_flow pg_copy_put(struct pg_lease *lease, struct str bytes);
/* Appends what has come, up to about BYTES. WAIT: nothing yet, lease->on_event() tells. END: that was
 * all. */
enum pg_flow pg_copy_get(struct pg_lease *lease, struct buf *out, size_t bytes);
/* Ends it, with an error of ours or NULL. 0: the outcome comes as that of CALL; -1: call->fault. */
int pg_copy_end(struct pg_lease *lease, struct pg_call *call, const char *error);

#endif
