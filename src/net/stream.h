/* net/stream.h - a connected socket, non-blocking, with what is known of both its directions.
 *
 * One edge-triggered registration for its whole life: no epoll_ctl while requests come and go.
 * Pausing means not reading; whoever resumes reading calls stream_read() itself, for no new edge
 * comes. Nothing is buffered here: what was not taken stays the caller's, who offers it again, the
 * same bytes first (TLS may have encrypted some of them). A stream is plain until net/tls puts itself
 * behind `ops`. Belongs to the loop's thread. */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "ev/loop.h"

struct stream;
struct tls_session;

/* What stream_read() and stream_writev() return besides a number of bytes. */
enum {
    STREAM_WAIT        = -1, /* not now: on_event tells when */
    STREAM_FIN         = -2, /* read only: the peer has ended its direction */
    STREAM_FAIL        = -3, /* reset or failed; errno is in stream.error */
    STREAM_UNSUPPORTED = -4,
};

/* Called from the loop when can_read, can_write, saw_fin or saw_err has become true: once for all
 * that an event changed. May free the stream. */
typedef void (*stream_fn)(struct stream *stream, void *arg);

struct stream_ops {
    ssize_t (*read)(struct stream *stream, void *to, size_t len);
    ssize_t (*writev)(struct stream *stream, const struct iovec *iov, int count);
    ssize_t (*sendfile)(struct stream *stream, int file_fd, off_t *offset, size_t len);
    void (*shut)(struct stream *stream); /* half-close: we send no more */
    void (*fini)(struct stream *stream); /* what ops itself holds */

    /* NULL, or looks first at what the kernel has told of. False: the owner need not hear of it. */
    bool (*on_news)(struct stream *stream);
};

/* A socket as it is. For what stands behind `ops` too: it reads and writes by these. */
extern const struct stream_ops stream_plain_ops;

struct stream {
    struct io                io;
    const struct stream_ops *ops;
    stream_fn                on_event;
    void                    *arg;
    struct loop             *loop;
    struct tls_session      *tls; /* owned by its ops; NULL: plain */
    int                      fd;
    int                      error;         /* errno of the failure, 0 while well */
    bool                     can_read : 1;  /* until WAIT or a short read; after a FIN for ever */
    bool                     can_write : 1; /* until WAIT or a short write */
    bool saw_fin : 1; /* the kernel told of a FIN; bytes before it may still be unread */
    bool saw_err : 1; /* reset: nothing can be sent any more */
    bool shut : 1;    /* we have half-closed */
    bool unsure : 1;  /* the last event may have hidden a reset behind its bytes */
    bool cut : 1;     /* a FIN without TLS' own end: somebody else may have sent it, in mid-text */

    /* Set by the owner while it does not read. A reset looks like new bytes then (libevent folds
     * EPOLLERR into READ and WRITE), so while this is set each such event is looked into, for the
     * price of one getsockopt(); saw_err tells of a client that has gone during long work. */
    bool paused : 1;
};

/* Takes FD (non-blocking already), which is closed also on error. Embedded: the owner's memory.
 * Starts with can_write. 0, or ERR_SYSTEM with errno set. The process ignores SIGPIPE. */
int stream_init(struct stream *stream, struct loop *loop, int fd, stream_fn on_event, void *arg);
/* Deregisters and closes the descriptor. A TLS stream that was not stream_shut() is cut: the peer
 * cannot tell whether that was all. */
void stream_fini(struct stream *stream);
/* Deregisters, does not close: for upgrades and for passing a connection on. Returns the fd. */
int stream_detach(struct stream *stream);

/* LEN is not 0. Past the last byte: FIN, as often as asked; FAIL, if the connection broke. */
static inline ssize_t stream_read(struct stream *stream, void *to, size_t len)
{
    return stream->ops->read(stream, to, len);
}

/* A reset that arrives together with bytes shows as bytes (libevent folds EPOLLERR into READ and
 * WRITE), and a short read of them takes the edge that both had. So whoever has read and waits for
 * more says so here: can_read is true once more if the last event leaves it open, and the next read
 * tells. Not for those who have all that they wanted, who would pay a system call for each event. */
static inline void stream_read_again(struct stream *stream)
{
    stream->can_read |= stream->unsure;
    stream->unsure = false;
}

/* The same for one who does not read: whether the kernel knows of a failure. One getsockopt(). */
bool stream_is_broken(const struct stream *stream);

/* Not after stream_shut(). What was taken may be less than was offered. */
static inline ssize_t stream_writev(struct stream *stream, const struct iovec *iov, int count)
{
    return stream->ops->writev(stream, iov, count);
}

/* At most LEN bytes of FILE_FD from *OFFSET, which moves on. 0: the file ends there.
 * STREAM_UNSUPPORTED: copy instead. */
static inline ssize_t stream_sendfile(struct stream *stream, int file_fd, off_t *offset, size_t len)
{
    return stream->ops->sendfile(stream, file_fd, offset, len);
}

/* The connection is of no use any more: from now on FAIL. Returns that. */
ssize_t stream_fail(struct stream *stream, int number);

static inline void stream_shut(struct stream *stream)
{
    stream->ops->shut(stream);
}

#endif
