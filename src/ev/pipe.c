#include "ev/pipe.h"

#include <errno.h>
#include <unistd.h>

#include "base/err.h"

static void on_io(int fd, short what, void *arg)
{
    struct pipe_end *end = arg;

    end->on_event(end);
}

int pipe_open(struct pipe_end *end, struct loop *loop, int fd,
              void (*on_event)(struct pipe_end *end))
{
    *end = (struct pipe_end){ .fd = fd, .on_event = on_event };
    if (io_start_edge(&end->io, loop, fd, on_io, end) == 0)
        return 0;
    end->fd = -1;
    close(fd);
    return ERR_SYSTEM;
}

void pipe_close(struct pipe_end *end)
{
    if (end->fd < 0)
        return;
    io_stop(&end->io);
    close(end->fd);
    end->fd = -1;
}

static ssize_t outcome(ssize_t n)
{
    if (n > 0)
        return n;
    if (n == 0 || errno == EPIPE)
        return PIPE_END;
    return errno == EAGAIN ? PIPE_WAIT : PIPE_FAIL;
}

ssize_t pipe_read(struct pipe_end *end, void *to, size_t len)
{
    ssize_t n;

    do
        n = read(end->fd, to, len);
    while (n < 0 && errno == EINTR);
    return outcome(n);
}

ssize_t pipe_write(struct pipe_end *end, const void *bytes, size_t len)
{
    ssize_t n;

    do
        n = write(end->fd, bytes, len);
    while (n < 0 && errno == EINTR);
    return outcome(n);
}
