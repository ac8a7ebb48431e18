/* ws/ws_say.h - what a WebSocket sends: messages in one frame or several, control frames. Private to
 * ws/ws_*. */
#ifndef WS_WS_SAY_H
#define WS_WS_SAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "ws/ws_code.h"
#include "ws/ws_encode.h"

struct ws;
struct ws_frame;

/* 0 or WS_MEMORY. There is room, and the socket is open. */
int ws_say_message(struct ws *ws, enum ws_kind kind, struct str data);
int ws_say_shared(struct ws *ws, struct ws_frame *frame);

void ws_say_control(struct ws *ws, enum ws_opcode opcode, struct str payload);
/* WS_CODE_NONE: without a code. */
void ws_say_close(struct ws *ws, unsigned code, struct str reason);

#endif
