/* ws/ws_read.h - what comes to a WebSocket: bytes of its channel to its reader, messages to its user,
 * answers to control frames. Private to ws/ws_*. */
#ifndef WS_WS_READ_H
#define WS_WS_READ_H

#include <stdbool.h>

struct ws;

/* A share of what is there. May end the socket. */
void ws_read_turn(struct ws *ws);

/* The peer has taken some of what waited for it: one that was held may be read again. */
void ws_let_read_on(struct ws *ws);

/* A message or frame has begun, or goes on: it has its time. */
void ws_watch_pace(struct ws *ws);

/* It is we who wait for the peer. */
bool ws_may_read(const struct ws *ws);

/* Something has come, or begins: the next heartbeat is a whole time away. */
void ws_sign_of_life(struct ws *ws);

#endif
