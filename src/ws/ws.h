/* ws/ws.h - a WebSocket (RFC 6455, permessage-deflate of RFC 7692) over a channel, either side:
 * messages in, messages out.
 *
 * Fragments, masks, pings and the closing handshake stay in here. Messages come one at a time: while
 * one is handled, nothing is read, and that is how a slow handler holds its peer up. A socket at
 * rest holds neither a parser nor a buffer: those are lent by the worker's `struct ws_shared`.
 *
 * Calls go down and return; events go up from the loop's turn alone. One worker's thread. */
#ifndef WS_WS_H
#define WS_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ws/ws_code.h"
#include "ws/ws_frame.h"
#include "ws/ws_shared.h"
#include "ws/ws_user.h"

struct channel;
struct ws;

/* Takes CHANNEL on success, whose events are the socket's from then on. OPTIONS are copied, USER is
 * borrowed. 0 or WS_MEMORY. */
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

/* FRAME as ws_send() sends a message; a client's socket makes its own frame of it. */
int ws_send_frame(struct ws *ws, struct ws_frame *frame);

#endif
