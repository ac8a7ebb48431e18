/* server/vitals.h - the admin socket's command `vitals MS`: how all workers are, a line each MS, and what they did in
 * each turn that others noticed (docs/internals/tools.md), until the client says `stop` or goes.
 *
 * A session lends each worker a struct vitals_worker and has a thread of its own (vitals_clock.h). Nothing of it is
 * there before somebody asks. One session at a time, and none while the profiler samples: both use
 * the same signal. */
#ifndef SERVER_VITALS_H
#define SERVER_VITALS_H

#include "server/admin.h"

struct err;
struct lend;
struct loop;
struct sockets;
struct vitals;
struct worker;

enum {
    VITALS_EVERY_MS     = 100, /* where the client says nothing */
    VITALS_EVERY_MS_MIN = 20,
    VITALS_EVERY_MS_MAX = 10000,
    VITALS_SILENT_MS = 2000, /* then a worker that has not given its last samples is done without */
    VITALS_UNREAD_BYTES =
        4 * 1024 * 1024, /* samples for a client that is behind by more are dropped */
};

struct vitals_options {
    struct loop          *loop; /* of the admin socket */
    struct admin         *admin;
    struct worker       **workers; /* borrowed, like all here */
    unsigned              worker_count;
    const struct sockets *sockets;
    const struct lend    *lend;
};

int vitals_open(struct vitals **out, const struct vitals_options *options, struct err *err);
/* Behind admin_close() and before the loop's end; NULL is fine. */
void vitals_close(struct vitals *vitals);

#endif
