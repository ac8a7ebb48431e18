/* load/load_ws.h - WebSocket on a connection of a load: messages go out, and a server that echoes sends
 * each of them back, in the same order. */
#ifndef LOAD_LOAD_WS_H
#define LOAD_LOAD_WS_H

#include "load/load_protocol.h"

struct err;
struct load_thread;

extern const struct load_protocol LOAD_WS;

/* What its sockets share, if it has some. 0 or ERR_MEMORY. */
int  load_ws_open(struct load_thread *thread, struct err *err);
void load_ws_close(struct load_thread *thread); /* idempotent */

#endif
