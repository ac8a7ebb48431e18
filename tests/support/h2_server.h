/* tests/support/h2_server.h - a server of HTTP/2 on a thread of its own, by nghttp2, that does to each request
 * what a script says, for tests of who sends them. */
#ifndef TESTS_SUPPORT_H2_SERVER_H
#define TESTS_SUPPORT_H2_SERVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "support/server_thread.h"

enum { H2_SERVER_HEADS_MAX = 8192, H2_SERVER_BODY_MAX = 65536 };

struct h2_server;

struct h2_peer {
    struct h2_server *server;
    nghttp2_session  *session;
    int               fd;
    unsigned          requests;      /* so far */
    char heads[H2_SERVER_HEADS_MAX]; /* "name: value\n" of all requests, as far as there is room */
    char body[H2_SERVER_BODY_MAX];   /* of all requests */
    size_t body_len;
    bool   closes; /* when all is said */
};

/* Request ID has ended. False: the connection is closed. */
typedef bool (*h2_server_fn)(struct h2_peer *peer, int32_t id);

struct h2_server {
    h2_server_fn         on_request;
    uint32_t             streams; /* that a client may have */
    struct server_thread thread;
};

/* --- what scripts say ------------------------------------------------------------------------------------ */

static inline ssize_t h2_server_read_text(nghttp2_session *session, int32_t id, uint8_t *to,
                                          size_t room, uint32_t *flags, nghttp2_data_source *source,
                                          void *arg)
{
    size_t len = strlen(source->ptr);

    if (len <= room)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else
        len = room;
    memcpy(to, source->ptr, len);
    source->ptr = (char *)source->ptr + len;
    return (ssize_t)len;
}

/* STATUS has three digits; TEXT stays. */
static inline void h2_server_answer(struct h2_peer *peer, int32_t id, const char *status,
                                    const char *text)
{
    nghttp2_nv            head = { (uint8_t *)":status", (uint8_t *)status, 7, 3, 0 };
    nghttp2_data_provider body = { { .ptr = (void *)text }, h2_server_read_text };

    nghttp2_submit_response(peer->session, id, &head, 1, *text ? &body : NULL);
}

static inline void h2_server_reset(struct h2_peer *peer, int32_t id, uint32_t code)
{
    nghttp2_submit_rst_stream(peer->session, NGHTTP2_FLAG_NONE, id, code);
}

/* No more than up to LAST. */
static inline void h2_server_leave(struct h2_peer *peer, int32_t last, uint32_t code)
{
    nghttp2_submit_goaway(peer->session, NGHTTP2_FLAG_NONE, last, code, NULL, 0);
}

/* --- frames ------------------------------------------------------------------------------------------------ */

static inline int h2_server_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                      const uint8_t *name, size_t name_len, const uint8_t *value,
                                      size_t value_len, uint8_t flags, void *arg)
{
    struct h2_peer *peer = arg;
    size_t          len  = strlen(peer->heads);

    snprintf(peer->heads + len, sizeof(peer->heads) - len, "%.*s: %.*s\n", (int)name_len, name,
             (int)value_len, value);
    return 0;
}

static inline int h2_server_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                                    const uint8_t *data, size_t len, void *arg)
{
    struct h2_peer *peer = arg;
    size_t          room = sizeof(peer->body) - peer->body_len;

    memcpy(peer->body + peer->body_len, data, len < room ? len : room);
    peer->body_len += len < room ? len : room;
    return 0;
}

static inline int h2_server_on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                                     void *arg)
{
    struct h2_peer *peer = arg;

    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    peer->requests++;
    peer->closes |= !peer->server->on_request(peer, frame->hd.stream_id);
    return 0;
}

/* --- life -------------------------------------------------------------------------------------------------- */

static inline nghttp2_session *h2_server_session(struct h2_peer *peer)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_settings_entry     limit = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                         peer->server->streams };
    nghttp2_session           *session;

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_server_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_server_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_server_on_frame);
    nghttp2_session_server_new(&session, callbacks, peer);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &limit, 1);
    return session;
}

static inline bool h2_server_write(struct h2_peer *peer)
{
    const uint8_t *bytes;
    ssize_t        len;

    while ((len = nghttp2_session_mem_send(peer->session, &bytes)) > 0)
        if (send(peer->fd, bytes, (size_t)len, MSG_NOSIGNAL) != len)
            return false;
    return !peer->closes && len == 0;
}

static inline bool h2_server_read(void *arg)
{
    struct h2_peer *peer = arg;
    uint8_t         bytes[16 * 1024];
    ssize_t         len = recv(peer->fd, bytes, sizeof(bytes), 0);

    return len > 0 && nghttp2_session_mem_recv(peer->session, bytes, (size_t)len) == len &&
           h2_server_write(peer);
}

static inline void *h2_server_open(void *server, int fd)
{
    struct h2_peer *peer = calloc(1, sizeof(*peer));

    if (!peer)
        abort();
    peer->server  = server;
    peer->fd      = fd;
    peer->session = h2_server_session(peer);
    h2_server_write(peer);
    return peer;
}

static inline void h2_server_close(void *arg)
{
    struct h2_peer *peer = arg;

    nghttp2_session_del(peer->session);
    free(peer);
}

static const struct server_kind H2_SERVER_KIND = { h2_server_open, h2_server_read,
                                                   h2_server_close };

static inline void h2_server_start(struct h2_server *server, h2_server_fn on_request,
                                   uint32_t streams)
{
    server->on_request = on_request;
    server->streams    = streams;
    server_thread_start(&server->thread, &H2_SERVER_KIND, server);
}

static inline void h2_server_stop(struct h2_server *server)
{
    server_thread_stop(&server->thread);
}

#endif
