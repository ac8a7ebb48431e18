/* client/client_write.h - a call's request on its way out (client/client_call.h). */
#ifndef CLIENT_CLIENT_WRITE_H
#define CLIENT_CLIENT_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct client_call;

/* Bytes of a streamed body that were taken, 0: on_event() tells when there is room. After a fault, or
 * when the response has ended, all of it, to nowhere. */
size_t client_write_body(struct client_call *call, struct str data);
bool   client_write_has_room(const struct client_call *call);
/* False: the body is shorter than was announced, and the call has failed. */
bool client_write_end(struct client_call *call);

/* For client_call.c: as much as the socket takes. */
void client_write_flush(struct client_call *call);

#endif
