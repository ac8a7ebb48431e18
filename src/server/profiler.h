/* server/profiler.h - the admin socket's command `profile HZ`: samples of all workers until the client
 * says `stop` or goes (docs/internals/profiler.md).
 *
 * A session makes a profile for each worker and sends it there; at the end each sends its profile back,
 * and the lines are told. One session at a time. */
#ifndef SERVER_PROFILER_H
#define SERVER_PROFILER_H

#include "server/admin.h"

struct err;
struct inbox;
struct loop;
struct profiler;
struct worker;

enum {
    PROFILER_HZ_MAX    = 1000,
    PROFILER_SILENT_MS = 2000, /* then a worker that has not handed over is done without */
};

struct profiler_options {
    struct loop    *loop; /* of the admin socket */
    struct admin   *admin;
    struct worker **workers; /* borrowed, like all here */
    unsigned        worker_count;
};

int profiler_open(struct profiler **out, const struct profiler_options *options, struct err *err);
/* Behind admin_close() and before the loop's end; NULL is fine. What workers still have comes back with
 * their loops. */
void profiler_close(struct profiler *profiler);

#endif
