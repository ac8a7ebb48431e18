/* client/client_read.h - a call's response on its way in (client/client_call.h). */
#ifndef CLIENT_CLIENT_READ_H
#define CLIENT_CLIENT_READ_H

#include <sys/types.h>

#include "client/client_state.h"

/* After has_head: at most ROOM bytes, CALL_WAIT, CALL_END or CALL_FAIL. */
ssize_t client_read_body(struct client_call *call, char *to, size_t room);

/* For client_call.c: reads until the head is complete or nothing is there. */
void client_read_head(struct client_call *call);

#endif
