/* ws/ws_frame.h - a message for many: encoded once for all the servers' sockets of a worker, and
 * deflated when the first that wants it so is sent to. */
#ifndef WS_WS_FRAME_H
#define WS_WS_FRAME_H

#include <stdbool.h>

#include "base/str.h"
#include "ws/ws_code.h"

struct ws_frame;
struct ws_shared;

/* DATA is copied. 0, WS_NOT_TEXT or WS_MEMORY. */
int  ws_frame_new(struct ws_frame **out, struct ws_shared *shared, enum ws_kind kind,
                  struct str data);
void ws_frame_free(struct ws_frame *frame); /* also while sockets still send it; NULL is fine */

enum ws_kind ws_frame_kind(const struct ws_frame *frame);
struct str   ws_frame_data(const struct ws_frame *frame); /* the message itself */

/* The frame as a server sends it. DEFLATED: compressed, if that makes it smaller. */
struct str ws_frame_bytes(struct ws_frame *frame, bool deflated);

#endif
