/* ws/ws_end.h - how a WebSocket ends: the closing handshake, the channel's end, its user's last event,
 * its memory. Private to ws/ws_*. */
#ifndef WS_WS_END_H
#define WS_WS_END_H

#include "base/str.h"

struct ws;

/* Around each event: what is over by its end is freed. */
void ws_enter(struct ws *ws);
void ws_leave(struct ws *ws);

/* It stands at rest, or reads no more. */
void ws_drop_reader(struct ws *ws);

/* What on_closed() will say. */
void ws_note_end(struct ws *ws, unsigned code, struct str reason);
/* Begins the limit of the closing handshake. */
void ws_start_closing_limit(struct ws *ws);
/* The peer broke the rules: it is told how, and not heard any more (RFC 6455, 7.1.7). */
void ws_fail(struct ws *ws, unsigned code, const char *why);
/* All is said: what waits goes out, and the channel ends. */
void ws_begin_end(struct ws *ws);
void ws_end_if_sent(struct ws *ws);

/* Each is the last thing that an event does: on_closed() comes from inside. */
void ws_end_channel(struct ws *ws);
void ws_cut(struct ws *ws, unsigned code); /* 0: the code that was noted */
void ws_finish(struct ws *ws);             /* the channel has gone by itself */
void ws_free(struct ws *ws);

#endif
