/* base/log_sink.h - where the log's text goes: a file that can be opened anew, or a descriptor.
 *
 * One thread at a time. Text is gathered and written in large pieces. What cannot be written (the
 * disk is full, the reader has gone) is thrown away and counted in lines, so that nothing is
 * ever tried in a loop; the next piece is tried again. */
#ifndef BASE_LOG_SINK_H
#define BASE_LOG_SINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

enum {
    LOG_SINK_BATCH_BYTES = 64 * 1024, /* written when this much has come together */
    LOG_SINK_BUF_MAX     = 512 * 1024,
};

struct log_sink {
    const char *path; /* owned; NULL: fd is borrowed */
    int         fd;
    struct buf  text;    /* whole lines that wait to be written */
    bool        cut;     /* the last write ended within a line: begin with a line end */
    uint64_t    told_ns; /* when standard error last heard of it; 0: never */
    atomic_bool hurry;   /* any thread: do not wait for a reader any more */
};

/* PATH NULL: FD. */
int  log_sink_open(struct log_sink *sink, const char *path, int fd, struct err *err);
void log_sink_close(struct log_sink *sink);

/* Opens the path anew; on failure the old file goes on and ERR says why. */
int log_sink_reopen(struct log_sink *sink, struct err *err);

/* Writes what is in `text`, waiting for a slow reader unless `hurry` is set. Returns the number of
 * lines that could not be written. */
uint64_t log_sink_flush(struct log_sink *sink);

#endif
