#include "base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

enum {
    FILE_MODE        = 0640,
    POLL_MS          = 50,
    TELL_INTERVAL_NS = 1000000000,
};

static int open_path(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, FILE_MODE);

    return fd >= 0 ? fd : err_set_errno(err, "log file %s", path);
}

int log_sink_open(struct log_sink *sink, const char *path, int fd, struct err *err)
{
    memset(sink, 0, sizeof(*sink));
    buf_init(&sink->text, LOG_SINK_BUF_MAX);
    sink->fd = fd;
    if (!path)
        return 0;
    sink->fd = open_path(path, err);
    if (sink->fd < 0)
        return sink->fd;
    sink->path = strdup(path);
    if (sink->path)
        return 0;
    close(sink->fd);
    return err_set(err, ERR_MEMORY, "log file %s: no memory", path);
}

void log_sink_close(struct log_sink *sink)
{
    if (sink->path)
        close(sink->fd);
    free((char *)sink->path);
    buf_fini(&sink->text);
}

int log_sink_reopen(struct log_sink *sink, struct err *err)
{
    int fd;

    if (!sink->path)
        return 0;
    fd = open_path(sink->path, err);
    if (fd < 0)
        return fd;
    close(sink->fd);
    sink->fd  = fd;
    sink->cut = false;
    return 0;
}

static uint64_t count_lines(const char *at, size_t len)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < len; i++)
        lines += at[i] == '\n';
    return lines;
}

/* Once a second at most, and not to the place that has just failed. */
static void tell_stderr(struct log_sink *sink, int error)
{
    uint64_t now = clock_mono_ns();

    if (sink->fd == STDERR_FILENO || (sink->told_ns && now - sink->told_ns < TELL_INTERVAL_NS))
        return;
    sink->told_ns = now;
    dprintf(STDERR_FILENO, "srv: log: cannot write to %s: %s\n",
            sink->path ? sink->path : "its descriptor", strerror(error));
}

/* The descriptor does not block and its reader is slow. False: there is no more time. */
static bool wait_for_reader(struct log_sink *sink)
{
    struct pollfd pollfd = { .fd = sink->fd, .events = POLLOUT };

    while (!atomic_load(&sink->hurry))
        if (poll(&pollfd, 1, POLL_MS) != 0)
            return true;
    return false;
}

/* Number of bytes written before the end or an error; *ERROR is 0 or its errno. */
static size_t write_all(struct log_sink *sink, const char *at, size_t len, int *error)
{
    size_t done = 0;

    *error = 0;
    while (done < len) {
        ssize_t n = write(sink->fd, at + done, len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno == EAGAIN && wait_for_reader(sink))
            continue;
        else if (n < 0 && errno != EINTR) {
            *error = errno;
            return done;
        }
    }
    return done;
}

uint64_t log_sink_flush(struct log_sink *sink)
{
    const char *at   = sink->text.at;
    size_t      len  = sink->text.len, done;
    uint64_t    lost = 0;
    int         error;

    if (!len)
        return 0;
    if (sink->cut && write_all(sink, "\n", 1, &error) == 1)
        sink->cut = false;
    done = write_all(sink, at, len, &error);
    if (done < len) {
        sink->cut = sink->cut || (done > 0 && at[done - 1] != '\n');
        lost      = count_lines(at + done, len - done);
        tell_stderr(sink, error);
    }
    buf_clear(&sink->text);
    return lost;
}
