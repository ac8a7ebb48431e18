/* http/ws.h - a WebSocket (RFC 6455, permessage-deflate of RFC 7692) over a channel, either side:
 * messages in, messages out.
 *
 * Fragments, masks, pings and the closing handshake stay in here. Messages come one at a time: while
 * one is handled, nothing is read, and that is how a slow handler holds its peer up. A socket at
 * rest holds neither a parser nor a buffer: those are lent by the worker's `struct ws_shared`.
 *
 * Calls go down and return; events go up from the loop's turn alone. One worker's thread. */
#ifndef HTTP_WS_H
#define HTTP_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct channel;
struct err;
struct loop;
struct ws;
struct ws_frame;

enum ws_kind { WS_TEXT, WS_BINARY };

/* What sending returns besides 0. Nothing was taken then. */
enum {
    WS_WAIT     = -1, /* the buffer is full: on_room() tells when */
    WS_GONE     = -2, /* it closes or has gone */
    WS_NOT_TEXT = -3, /* a text that is not UTF-8, which no peer would take */
    WS_MEMORY   = -4,
};

/* Codes of RFC 6455, 7.4.1, and of IANA's registry. */
enum ws_code {
    WS_CODE_NORMAL      = 1000,
    WS_CODE_GOING_AWAY  = 1001,
    WS_CODE_PROTOCOL    = 1002,
    WS_CODE_UNSUPPORTED = 1003,
    WS_CODE_NONE        = 1005, /* never sent: the peer's close frame had no code */
    WS_CODE_ABNORMAL    = 1006, /* never sent: it ended without a close frame */
    WS_CODE_NOT_UTF8    = 1007,
    WS_CODE_POLICY      = 1008,
    WS_CODE_TOO_LARGE   = 1009,
    WS_CODE_EXTENSION   = 1010,
    WS_CODE_INTERNAL    = 1011,
    WS_CODE_RESTART     = 1012,
    WS_CODE_TRY_LATER   = 1013,
};

enum {
    WS_REASON_BYTES_MAX = 123,  /* of a close frame, beside its code */
    WS_CLOSE_MS         = 5000, /* for the peer's close frame, after ours */
};

/* --- what the sockets of a worker share ------------------------------------------------------------ */

struct ws_shared;

/* Counted since it was opened. */
struct ws_counts {
    uint64_t sockets; /* open now */
    uint64_t messages_in;
    uint64_t messages_out;
    uint64_t encoded;  /* frames made for sending, whoever got them */
    uint64_t deflated; /* messages compressed, whoever got them */
};

int  ws_shared_open(struct ws_shared **out, struct loop *loop, struct err *err);
void ws_shared_close(struct ws_shared *shared); /* no socket any more; NULL is fine */
const struct ws_counts *ws_shared_counts(const struct ws_shared *shared);

/* --- a socket --------------------------------------------------------------------------------------- */

struct ws_options {
    bool     client;  /* it masks what it sends, and takes no mask */
    bool     deflate; /* as negotiated (http/ws_handshake.h), without context in either direction */
    unsigned deflate_bits; /* the window that the peer inflates with: 9 to 15; 0: 15 */
    uint64_t limit;        /* bytes of a message, inflated; more: closed with 1009 */
    uint64_t buffer; /* bytes that may wait behind the channel's own 64 KiB before sending says
                            * WAIT; a message that is larger goes alone */
    uint64_t heartbeat_ms; /* silence after which a ping goes out; as much again without a sign of
                            * life: 1006. 0: none */
    size_t
        fragment; /* bytes of a frame, at most, of what ws_send() sends; 0: a message is a frame */
};

/* NULL for what does not interest. Each may close or abort the socket. */
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

/* Takes CHANNEL on success, whose events are the socket's from then on. OPTIONS are copied, USER is
 * borrowed. 0 or ERR_MEMORY. */
int   ws_open(struct ws **out, struct ws_shared *shared, struct channel *channel,
              const struct ws_options *options, const struct ws_user *user, void *arg);
void *ws_arg(const struct ws *ws);

/* DATA is copied or written. 0, WAIT, GONE, NOT_TEXT or MEMORY. */
int ws_send(struct ws *ws, enum ws_kind kind, struct str data);

/* The message was handled: reading goes on. */
void ws_next(struct ws *ws);

/* Begins the closing handshake: what was sent goes out before it, on_closed() follows within
 * WS_CLOSE_MS, no message comes any more. CODE is one that ws_code_may_be_sent() allows, or 0 for a
 * frame without one. A longer REASON is cut at a character. Idempotent. */
void ws_close(struct ws *ws, unsigned code, struct str reason);

/* Cut and freed; no event comes any more. */
void ws_abort(struct ws *ws);

/* Bytes that wait to be sent, the channel's included. */
size_t ws_pending(const struct ws *ws);
bool   ws_is_open(const struct ws *ws); /* false once either side has begun to close */

/* 1000-1003, 1007-1014, 3000-4999. */
bool ws_code_may_be_sent(unsigned code);

/* --- a message for many ------------------------------------------------------------------------------ */

/* One message, encoded once for all servers' sockets of the worker, and deflated when the first
 * that wants it so is sent to. DATA is copied. 0, NOT_TEXT or MEMORY. */
int  ws_frame_new(struct ws_frame **out, struct ws_shared *shared, enum ws_kind kind,
                  struct str data);
void ws_frame_free(struct ws_frame *frame); /* also while sockets still send it; NULL is fine */

/* As ws_send(). */
int ws_send_frame(struct ws *ws, struct ws_frame *frame);

#endif
