#include "net/stream.h"

#include <assert.h>
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/iov.h"

ssize_t stream_fail(struct stream *stream, int number)
{
    stream->error    = number;
    stream->saw_err  = true;
    stream->can_read = stream->can_write = false;
    return STREAM_FAIL;
}

static bool is_not_yet(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK;
}

/* --- a plain socket ------------------------------------------------------------------------- */

static ssize_t receive(int fd, void *to, size_t len)
{
    ssize_t n;

    do
        n = recv(fd, to, len, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* What came before the connection broke is still to be had. The kernel has told us its error and
 * would now tell of an end, which there was not. */
static ssize_t read_rest(struct stream *stream, void *to, size_t len)
{
    ssize_t n = receive(stream->fd, to, len);

    return n > 0 ? n : STREAM_FAIL;
}

/* A short read has emptied the socket, so the next byte brings an edge. Not so after a FIN: its
 * edge has been, and the reader must come back to find the end. */
static ssize_t plain_read(struct stream *stream, void *to, size_t len)
{
    ssize_t n;

    if (stream->error)
        return read_rest(stream, to, len);
    n = receive(stream->fd, to, len);
    if (n > 0) {
        if ((size_t)n < len)
            stream->can_read = stream->saw_fin;
        return n;
    }
    if (n == 0) {
        stream->can_read = stream->saw_fin = true;
        return STREAM_FIN;
    }
    if (!is_not_yet(errno))
        return stream_fail(stream, errno);
    stream->can_read = false;
    return STREAM_WAIT;
}

/* One piece is the common case, and send() is the shorter way into the kernel. */
static ssize_t send_pieces(int fd, const struct iovec *iov, int count)
{
    struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count };

    if (count == 1)
        return send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static ssize_t plain_writev(struct stream *stream, const struct iovec *iov, int count)
{
    ssize_t n;

    assert(!stream->shut);
    if (stream->error)
        return STREAM_FAIL;
    do
        n = send_pieces(stream->fd, iov, count);
    while (n < 0 && errno == EINTR);

    if (n >= 0) {
        if ((size_t)n < iov_len(iov, count))
            stream->can_write = false;
        return n;
    }
    if (!is_not_yet(errno))
        return stream_fail(stream, errno);
    stream->can_write = false;
    return STREAM_WAIT;
}

/* Less than LEN may mean a full socket or a file that ends: only the next call can tell, so
 * can_write stays. */
static ssize_t plain_sendfile(struct stream *stream, int file_fd, off_t *offset, size_t len)
{
    ssize_t n;

    assert(!stream->shut);
    if (stream->error)
        return STREAM_FAIL;
    do
        n = sendfile(stream->fd, file_fd, offset, len);
    while (n < 0 && errno == EINTR);

    if (n >= 0)
        return n;
    if (errno == EINVAL || errno == ENOSYS)
        return STREAM_UNSUPPORTED;
    if (!is_not_yet(errno))
        return stream_fail(stream, errno);
    stream->can_write = false;
    return STREAM_WAIT;
}

/* An error means that the connection has gone, which reading finds out too. */
static void plain_shut(struct stream *stream)
{
    if (!stream->shut)
        shutdown(stream->fd, SHUT_WR);
    stream->shut = true;
}

static void plain_fini(struct stream *stream)
{
}

const struct stream_ops stream_plain_ops = {
    .read     = plain_read,
    .writev   = plain_writev,
    .sendfile = plain_sendfile,
    .shut     = plain_shut,
    .fini     = plain_fini,
};

/* --- events --------------------------------------------------------------------------------- */

/* A reset arrives as READ and WRITE, without CLOSED. So do new bytes on a socket that can take
 * some; but whoever reads them will meet the reset. Where nobody does, the kernel is asked. */
static bool may_hide_reset(const struct stream *stream, short what)
{
    return (what & (IO_READ | IO_WRITE | IO_CLOSED)) == (IO_READ | IO_WRITE) &&
           (stream->paused || stream->can_read) && !stream->saw_err;
}

static int pending_error(int fd)
{
    int       number = 0;
    socklen_t len    = sizeof(number);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) < 0 ? errno : number;
}

bool stream_is_broken(const struct stream *stream)
{
    return stream->error || pending_error(stream->fd) != 0;
}

static void on_io(int fd, short what, void *arg)
{
    struct stream *stream = arg;
    int            number = may_hide_reset(stream, what) ? pending_error(fd) : 0;
    bool           news   = false;

    if (number != 0) {
        stream_fail(stream, number);
        news = true;
    } else if (!stream->error) {
        news = ((what & IO_READ) && !stream->can_read) ||
               ((what & IO_WRITE) && !stream->can_write) ||
               ((what & IO_CLOSED) && !stream->saw_fin);
        stream->unsure = (what & (IO_READ | IO_WRITE | IO_CLOSED)) == (IO_READ | IO_WRITE);
        stream->can_read |= (what & IO_READ) != 0;
        stream->can_write |= (what & IO_WRITE) != 0;
        stream->saw_fin |= (what & IO_CLOSED) != 0;
    }
    if (news && (!stream->ops->on_news || stream->ops->on_news(stream)))
        stream->on_event(stream, stream->arg);
}

/* --- life ----------------------------------------------------------------------------------- */

int stream_init(struct stream *stream, struct loop *loop, int fd, stream_fn on_event, void *arg)
{
    *stream = (struct stream){
        .ops       = &stream_plain_ops,
        .on_event  = on_event,
        .arg       = arg,
        .loop      = loop,
        .fd        = fd,
        .can_write = true,
    };
    if (io_start_edge(&stream->io, loop, fd, on_io, stream) < 0) {
        int number = errno;

        close(fd);
        errno = number;
        return ERR_SYSTEM;
    }
    return 0;
}

void stream_fini(struct stream *stream)
{
    close(stream_detach(stream));
}

int stream_detach(struct stream *stream)
{
    io_stop(&stream->io);
    stream->ops->fini(stream);
    return stream->fd;
}
