#include "client/client_bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "net/stream.h"
#include "net/tls.h"

enum { PIECE_BYTES = 16 * 1024 /* a record of TLS */ };

/* One direction. */
struct flow {
    struct stream *from, *to;
    bool           is_over;
    size_t         at, len; /* of `bytes`: read and not written yet */
    char           bytes[PIECE_BYTES];
};

struct client_bridge {
    struct stream proxy;
    struct stream inner; /* the other end of the near one */
    bool          is_broken;
    struct flow   out, back;
};

/* --- flowing ------------------------------------------------------------------------------------------ */

/* STREAM_WAIT, STREAM_FAIL, or 0: all is written. */
static ssize_t write_rest(struct flow *flow)
{
    while (flow->at < flow->len) {
        struct iovec piece = { flow->bytes + flow->at, flow->len - flow->at };
        ssize_t      n     = stream_writev(flow->to, &piece, 1);

        if (n < 0)
            return n;
        flow->at += (size_t)n;
    }
    return 0;
}

/* Until one side has to wait. It cannot keep the loop: one of the two is our own pair, which holds so much and is
 * emptied, or filled, in a turn of its own. False: it is broken. */
static bool pump(struct flow *flow)
{
    while (!flow->is_over) {
        ssize_t n = write_rest(flow);

        if (n == 0)
            n = stream_read(flow->from, flow->bytes, sizeof(flow->bytes));
        if (n == STREAM_FIN) {
            flow->is_over = true;
            stream_shut(flow->to);
            break;
        }
        if (n < 0)
            return n == STREAM_WAIT;
        flow->at  = 0;
        flow->len = (size_t)n;
    }
    return true;
}

/* An end that is passed on within the handshake would break it off. */
static bool pump_out(struct client_bridge *bridge)
{
    return !tls_info(&bridge->proxy) || pump(&bridge->out);
}

/* The near end reads its end then. The proxy's side stays, for what it knows of the fault. */
static void on_event(struct stream *stream, void *arg)
{
    struct client_bridge *bridge = arg;

    if (bridge->is_broken || (pump(&bridge->back) && pump_out(bridge)))
        return;
    bridge->is_broken = true;
    stream_fini(&bridge->inner);
}

/* --- life --------------------------------------------------------------------------------------------- */

static int begin_tls(struct client_bridge *bridge, struct tls_clients *clients,
                     const struct client_tls *tls, struct err *err)
{
    char key[300]; /* not that of a server which happens to have the proxy's settings */
    int  len = snprintf(key, sizeof(key), "proxy %.*s", STR_ARG(tls->name));

    if (len >= (int)sizeof(key))
        return err_set(err, ERR_TOO_LARGE, "the name of the proxy is too long");
    return client_tls_begin(clients, tls, str_make(key, (size_t)len), &bridge->proxy, err);
}

static int open_streams(struct client_bridge *bridge, struct loop *loop, int fd, int inner,
                        struct err *err)
{
    if (stream_init(&bridge->proxy, loop, fd, on_event, bridge) != 0) {
        close(inner);
        return err_set_errno(err, "a connection to a proxy");
    }
    if (stream_init(&bridge->inner, loop, inner, on_event, bridge) == 0)
        return 0;
    stream_fini(&bridge->proxy);
    return err_set_errno(err, "a connection to a proxy");
}

struct client_bridge *client_bridge_open(struct loop *loop, struct tls_clients *clients,
                                         const struct client_tls *tls, int fd, int *near,
                                         struct err *err)
{
    struct client_bridge *bridge = calloc(1, sizeof(*bridge));
    int                   pair[2];

    if (!bridge || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        err_set_errno(err, "a connection to a proxy");
        close(fd);
        goto drop_bridge;
    }
    if (open_streams(bridge, loop, fd, pair[0], err) != 0)
        goto close_near;
    bridge->out  = (struct flow){ .from = &bridge->inner, .to = &bridge->proxy };
    bridge->back = (struct flow){ .from = &bridge->proxy, .to = &bridge->inner };
    if (begin_tls(bridge, clients, tls, err) != 0)
        goto close_streams;
    *near = pair[1];
    return bridge;

close_streams:
    stream_fini(&bridge->inner);
    stream_fini(&bridge->proxy);
close_near:
    close(pair[1]);
drop_bridge:
    free(bridge);
    return NULL;
}

/* What the near end has said last, the end of its own TLS perhaps, is still passed on. */
void client_bridge_close(struct client_bridge *bridge)
{
    if (!bridge)
        return;
    if (!bridge->is_broken) {
        pump_out(bridge);
        stream_shut(&bridge->proxy);
        stream_fini(&bridge->inner);
    }
    stream_fini(&bridge->proxy);
    free(bridge);
}

const char *client_bridge_fault(const struct client_bridge *bridge)
{
    return bridge ? tls_fault(&bridge->proxy) : "";
}
