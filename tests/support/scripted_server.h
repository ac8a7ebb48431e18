/* tests/support/scripted_server.h - a server on a thread of its own that does to each request what a
 * script says, for tests of who sends them. A request is a head without a body. */
#ifndef TESTS_SUPPORT_SCRIPTED_SERVER_H
#define TESTS_SUPPORT_SCRIPTED_SERVER_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SCRIPTED_PEERS_MAX = 64, SCRIPTED_HEAD_MAX = 4096 };

struct scripted_peer {
    int      fd;
    unsigned requests; /* so far */
    size_t   len;
    char     head[SCRIPTED_HEAD_MAX];
};

/* HEAD is the whole request, NUL-terminated. False: the connection is closed. */
typedef bool (*scripted_fn)(struct scripted_peer *peer, const char *head);

struct scripted_server {
    scripted_fn          on_request;
    int                  listener;
    uint16_t             port;
    pthread_t            thread;
    atomic_bool          is_over;
    struct scripted_peer peers[SCRIPTED_PEERS_MAX];
    unsigned             count;
};

static inline void scripted_send(struct scripted_peer *peer, const char *text)
{
    if (send(peer->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return; /* the other side has gone: its affair */
}

/* What the other side gets next is a reset. */
static inline void scripted_reset(struct scripted_peer *peer)
{
    struct linger now = { 1, 0 };

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static inline bool scripted_take_requests(struct scripted_server *server,
                                          struct scripted_peer   *peer)
{
    char *end;

    while ((end = memmem(peer->head, peer->len, "\r\n\r\n", 4))) {
        char   head[SCRIPTED_HEAD_MAX + 1];
        size_t len = (size_t)(end + 4 - peer->head);

        memcpy(head, peer->head, len);
        head[len] = '\0';
        memmove(peer->head, peer->head + len, peer->len - len);
        peer->len -= len;
        peer->requests++;
        if (!server->on_request(peer, head))
            return false;
    }
    return true;
}

static inline bool scripted_read(struct scripted_server *server, struct scripted_peer *peer)
{
    ssize_t n = recv(peer->fd, peer->head + peer->len, sizeof(peer->head) - peer->len, 0);

    if (n <= 0)
        return false;
    peer->len += (size_t)n;
    return scripted_take_requests(server, peer);
}

static inline void scripted_accept(struct scripted_server *server)
{
    int fd = accept(server->listener, NULL, NULL);

    if (fd < 0)
        return;
    if (server->count == SCRIPTED_PEERS_MAX)
        abort();
    server->peers[server->count++] = (struct scripted_peer){ .fd = fd };
}

static inline void scripted_drop(struct scripted_server *server, unsigned index)
{
    close(server->peers[index].fd);
    server->peers[index] = server->peers[--server->count];
}

static inline void *scripted_run(void *arg)
{
    struct scripted_server *server = arg;

    while (!atomic_load(&server->is_over)) {
        struct pollfd polled[SCRIPTED_PEERS_MAX + 1] = { { server->listener, POLLIN, 0 } };
        unsigned      count                          = server->count;

        for (unsigned i = 0; i < count; i++)
            polled[i + 1] = (struct pollfd){ server->peers[i].fd, POLLIN, 0 };
        poll(polled, count + 1, 10);
        for (unsigned i = count; i-- > 0;)
            if (polled[i + 1].revents && !scripted_read(server, &server->peers[i]))
                scripted_drop(server, i);
        if (polled[0].revents)
            scripted_accept(server);
    }
    return NULL;
}

static inline void scripted_start(struct scripted_server *server, scripted_fn on_request)
{
    struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          len = sizeof(at);

    memset(server, 0, sizeof(*server));
    server->on_request = on_request;
    server->listener   = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(server->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(server->listener, 128) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&at, &len) != 0)
        abort();
    server->port = ntohs(at.sin_port);
    pthread_create(&server->thread, NULL, scripted_run, server);
}

static inline void scripted_stop(struct scripted_server *server)
{
    atomic_store(&server->is_over, true);
    pthread_join(server->thread, NULL);
    while (server->count)
        scripted_drop(server, 0);
    close(server->listener);
}

#endif
