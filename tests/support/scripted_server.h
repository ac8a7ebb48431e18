/* tests/support/scripted_server.h - a server on a thread of its own that does to each request what a
 * script says, for tests of who sends them. A request is a head without a body. */
#ifndef TESTS_SUPPORT_SCRIPTED_SERVER_H
#define TESTS_SUPPORT_SCRIPTED_SERVER_H

#include <stdlib.h>
#include <string.h>

#include "support/server_thread.h"

enum { SCRIPTED_HEAD_MAX = 4096 };

struct scripted_server;

struct scripted_peer {
    struct scripted_server *server;
    int                     fd;
    unsigned                requests; /* so far */
    size_t                  len;
    char                    head[SCRIPTED_HEAD_MAX];
};

/* HEAD is the whole request, NUL-terminated. False: the connection is closed. */
typedef bool (*scripted_fn)(struct scripted_peer *peer, const char *head);

struct scripted_server {
    scripted_fn          on_request;
    struct server_thread thread;
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

static inline bool scripted_take_requests(struct scripted_peer *peer)
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
        if (!peer->server->on_request(peer, head))
            return false;
    }
    return true;
}

static inline bool scripted_read(void *arg)
{
    struct scripted_peer *peer = arg;
    ssize_t n = recv(peer->fd, peer->head + peer->len, sizeof(peer->head) - peer->len, 0);

    if (n <= 0)
        return false;
    peer->len += (size_t)n;
    return scripted_take_requests(peer);
}

static inline void *scripted_open(void *server, int fd)
{
    struct scripted_peer *peer = calloc(1, sizeof(*peer));

    if (!peer)
        abort();
    peer->server = server;
    peer->fd     = fd;
    return peer;
}

static const struct server_kind SCRIPTED_KIND = { scripted_open, scripted_read, free };

static inline void scripted_start(struct scripted_server *server, scripted_fn on_request)
{
    server->on_request = on_request;
    server_thread_start(&server->thread, &SCRIPTED_KIND, server);
}

static inline void scripted_stop(struct scripted_server *server)
{
    server_thread_stop(&server->thread);
}

#endif
