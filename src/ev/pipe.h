/* ev/pipe.h - our end of a pipe on the loop: tried first, waited for only when it has nothing to give
 * or take. As net/stream is for sockets; nothing is buffered here. */
#ifndef EV_PIPE_H
#define EV_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ev/loop.h"

/* What pipe_read() and pipe_write() return besides a number of bytes, which is never 0. */
enum {
    PIPE_WAIT = -1, /* on_event tells when */
    PIPE_END  = -2, /* the other end is closed */
    PIPE_FAIL = -3, /* errno says why */
};

struct pipe_end {
    struct io io;
    int       fd;                           /* -1: closed */
    void (*on_event)(struct pipe_end *end); /* from the loop's turn: try again */
};

/* Takes FD (non-blocking), which is closed also on error. 0, or ERR_SYSTEM with errno set. Embedded
 * in the owner's memory. SIGPIPE is ignored in this process. */
int pipe_open(struct pipe_end *end, struct loop *loop, int fd,
              void (*on_event)(struct pipe_end *end));
/* Idempotent; on memory that pipe_open() has seen. */
void pipe_close(struct pipe_end *end);

/* LEN is not 0, and the end is not closed. */
ssize_t pipe_read(struct pipe_end *end, void *to, size_t len);
ssize_t pipe_write(struct pipe_end *end, const void *bytes, size_t len);

#endif
