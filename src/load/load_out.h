/* load/load_out.h - requests of a connection on their way into its socket: many in one write, and
 * what the socket does not take is kept until it does. */
#ifndef LOAD_LOAD_OUT_H
#define LOAD_LOAD_OUT_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/buf.h"

struct load_conn;
struct load_request;
struct load_thread;

enum { LOAD_BATCH_MAX = 64 /* requests in one write */ };

/* On the stack of whoever sends. */
struct load_batch {
    struct iovec pieces[LOAD_BATCH_MAX];
    int          count;
    struct buf   copy; /* of a request with an id of its own */
};

void load_batch_init(struct load_batch *batch);
void load_batch_fini(struct load_batch *batch);

/* All of these: false is a connection that broke, and is now the caller's to take care of. */
bool load_batch_add(struct load_batch *batch, struct load_conn *conn,
                    const struct load_request *request);
bool load_batch_flush(struct load_batch *batch, struct load_conn *conn);
bool load_out_send(struct load_conn *conn, const struct iovec *pieces, int count);
bool load_out_resume(struct load_conn *conn); /* the socket can take more */
/* Waits for load_out_resume(), with what comes behind it. */
void load_out_keep(struct load_conn *conn, const struct iovec *pieces, int count);

/* Into BYTES, a copy of the request's. */
void load_out_write_ids(struct load_thread *thread, const struct load_request *request,
                        char *bytes);

#endif
