/* ws/ws_user.h - what a WebSocket is opened with (ws/ws.h): its bounds, and whom it tells. */
#ifndef WS_WS_USER_H
#define WS_WS_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ws/ws_code.h"

struct ws;

struct ws_options {
    bool     client;       /* it masks what it sends, and takes no mask */
    bool     deflate;      /* as negotiated (ws/ws_handshake.h): no context in either direction */
    unsigned deflate_bits; /* the window that the peer inflates with: 8 to 15; 0: 15 */
    uint64_t limit;        /* bytes of a message, inflated; more: closed with 1009 */
    uint64_t buffer;       /* bytes that may wait behind the channel's own 64 KiB; a message that is
                            * larger goes alone */
    uint64_t heartbeat_ms; /* silence after which a ping goes out; as much again without a sign of
                            * life: 1006. 0: none */
    uint64_t
        message_ms; /* a message that has begun has to go on: so long without WS_PACE_BYTES of it or its
                          * end, and it is closed with 1008. 0: never */
    size_t fragment; /* ws_send() cuts messages into frames of so many bytes; 0: it does not */
};

/* All but on_message() may be NULL. Each may close or abort the socket. */
struct ws_user {
    /* DATA lives until this returns. The next one comes after ws_next(), which may be called from
     * here. */
    void (*on_message)(struct ws *ws, enum ws_kind kind, struct str data);
    /* After WAIT: half of the buffer is free. */
    void (*on_room)(struct ws *ws);
    /* Once, and the last; the socket is freed when it returns. CODE and REASON are the peer's if it
     * closed (1005: it gave none), our own if we did, 1006 if it ended without a close frame or
     * ours got no answer. */
    void (*on_closed)(struct ws *ws, unsigned code, struct str reason);
};

#endif
