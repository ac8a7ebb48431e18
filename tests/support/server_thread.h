/* tests/support/server_thread.h - a thread that listens on this machine and hands what comes to a server of a test,
 * which says what to do with it. It ends with its test, though that fails. */
#ifndef TESTS_SUPPORT_SERVER_THREAD_H
#define TESTS_SUPPORT_SERVER_THREAD_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/check.h"

enum {
    SERVER_PEERS_MAX    = 64,
    SERVER_SEND_SECONDS = 10, /* to a peer that takes nothing, for the thread must end */
};

/* Called in the thread. */
struct server_kind {
    void *(*open)(void *server, int fd); /* what is its peer's */
    bool (*read)(void *peer);            /* something has come. False: it is closed */
    void (*close)(void *peer);           /* frees it; FD is not its affair */
};

struct server_thread {
    const struct server_kind *kind;
    void                     *server;
    uint16_t                  port;
    int                       listener;
    int                       over; /* an eventfd */
    pthread_t                 thread;
    struct {
        int   fd;
        void *peer;
    } peers[SERVER_PEERS_MAX];
    unsigned count;
};

static inline void server_thread_accept(struct server_thread *st)
{
    struct timeval limit = { .tv_sec = SERVER_SEND_SECONDS };
    int            fd    = accept(st->listener, NULL, NULL);

    if (fd < 0)
        return;
    if (st->count == SERVER_PEERS_MAX)
        abort();
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    st->peers[st->count].fd     = fd;
    st->peers[st->count++].peer = st->kind->open(st->server, fd);
}

static inline void server_thread_drop(struct server_thread *st, unsigned index)
{
    st->kind->close(st->peers[index].peer);
    close(st->peers[index].fd);
    st->peers[index] = st->peers[--st->count];
}

static inline void *server_thread_run(void *arg)
{
    enum { OVER, LISTENER, FIRST };
    struct server_thread *st = arg;

    for (;;) {
        struct pollfd polled[FIRST + SERVER_PEERS_MAX] = {
            [OVER]     = { st->over, POLLIN, 0 },
            [LISTENER] = { st->listener, POLLIN, 0 },
        };
        unsigned count = st->count;

        for (unsigned i = 0; i < count; i++)
            polled[FIRST + i] = (struct pollfd){ st->peers[i].fd, POLLIN, 0 };
        poll(polled, FIRST + count, -1);
        if (polled[OVER].revents)
            return NULL;
        for (unsigned i = count; i-- > 0;)
            if (polled[FIRST + i].revents && !st->kind->read(st->peers[i].peer))
                server_thread_drop(st, i);
        if (polled[LISTENER].revents)
            server_thread_accept(st);
    }
}

static inline void server_thread_stop(struct server_thread *st)
{
    eventfd_write(st->over, 1);
    pthread_join(st->thread, NULL);
    while (st->count)
        server_thread_drop(st, 0);
    close(st->listener);
    close(st->over);
    check_ended(st);
}

static inline void server_thread_end(void *st)
{
    server_thread_stop(st);
}

/* ST is static, or lives as long. SERVER is handed to open(). */
static inline void server_thread_start(struct server_thread *st, const struct server_kind *kind,
                                       void *server)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof(at);

    *st          = (struct server_thread){ .kind = kind, .server = server };
    st->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    st->over     = eventfd(0, EFD_CLOEXEC);
    if (bind(st->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(st->listener, 128) != 0 ||
        getsockname(st->listener, (struct sockaddr *)&at, &len) != 0 ||
        pthread_create(&st->thread, NULL, server_thread_run, st) != 0)
        abort();
    st->port = ntohs(at.sin_port);
    check_begun(server_thread_end, st);
}

#endif
