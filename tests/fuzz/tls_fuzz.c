/* links: srv_net
 *
 * What a peer may send instead of TLS: nothing falls over, and what fails says why. The first byte says which
 * side we are and how many bytes arrive at once. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/stream.h"
#include "net/tls.h"
#include "support/tls_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 32 * 1024 };

static struct loop       *loop;
static struct tls        *tls;
static struct tls_server *server;
static struct tls_client *client;

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static void open_once(void)
{
    static const char *const NAMES[] = { "a.example", NULL };
    struct err               err;
    struct tls_made          made;
    struct tls_identity      own;

    if (loop)
        return;
    signal(SIGPIPE, SIG_IGN);
    must(loop_open(&loop, &err));
    must(tls_open(&tls, loop, &err));
    must(tls_make(&made, &(struct tls_wish){ .names = NAMES, .days = 1 }, &err));
    own = (struct tls_identity){ { .text = buf_str(&made.cert) }, { .text = buf_str(&made.key) } };
    must(tls_server_open(&server, tls,
                         &(struct tls_server_options){ .identities = &own, .identity_count = 1 },
                         &err));
    must(tls_client_open(&client, tls, &(struct tls_client_options){ .trusts_all = true }, &err));
    tls_made_fini(&made);
}

static void on_event(struct stream *stream, void *arg)
{
    char    bytes[256];
    ssize_t n;

    do
        n = stream_read(stream, bytes, sizeof(bytes));
    while (n > 0 && stream->can_read);
    if (tls_fault_kind(stream) != TLS_WELL)
        assert(tls_fault(stream)[0] && stream->saw_err);
}

static void on_time(struct timer *timer)
{
    loop_break(loop);
}

static void run_turn(void)
{
    struct timer timer;

    timer_init(&timer, on_time);
    timer_start(&timer, loop, 0);
    loop_run(loop);
    timer_stop(&timer, loop);
}

/* Also what we send is taken, and thrown away. */
static void feed(int fd, const uint8_t *data, size_t size, size_t step)
{
    char answer[4096];

    for (size_t at = 0; at < size; at += step) {
        size_t len = size - at < step ? size - at : step;

        if (send(fd, data + at, len, 0) < 0)
            return;
        run_turn();
        while (recv(fd, answer, sizeof(answer), 0) > 0)
            continue;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stream stream;
    struct err    err;
    int           fds[2];

    if (size < 2 || size > BYTES_MAX)
        return 0;
    open_once();
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
    must(stream_init(&stream, loop, fds[0], on_event, NULL));
    if (data[0] & 1)
        must(tls_connect(&stream, client, &(struct tls_target){ .name = STR("a.example") }, &err));
    else
        must(tls_accept(&stream, server, STR_NONE));
    run_turn();
    feed(fds[1], data + 1, size - 1, data[0] & 2 ? 7 : 4096);
    close(fds[1]);
    for (int i = 0; i < 3; i++)
        run_turn();
    stream_fini(&stream);
    return 0;
}
