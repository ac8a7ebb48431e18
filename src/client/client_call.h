/* client/client_call.h - one request to another server and its response, over a connection of
 * client/client.h.
 *
 *     client_call_start()   a connection is taken or opened, and the request is written
 *     on_event()            from the loop's turn: look again (connected, head, bytes, room, fault)
 *     client_read_body()    the body is pulled: nothing is read that nobody asked for
 *     client_call_close()   at any time. The connection is kept if it is at rest, else closed
 *
 * The request goes on while the response comes in, so both may stream at once. A call in its owner's
 * memory; belongs to the loop's thread. */
#ifndef CLIENT_CLIENT_CALL_H
#define CLIENT_CLIENT_CALL_H

#include "client/client_read.h"
#include "client/client_state.h"
#include "client/client_write.h"

/* Zeroed memory with the fields set that client_state.h says. TARGET's texts and HEAD may go after the call. */
void client_call_start(struct client_call *call, struct http_client *client, struct loop *loop,
                       struct arena_pool *arenas);

/* The rest may take MS; 0: as long as it likes. */
void client_call_limit(struct client_call *call, uint64_t ms);
/* Makes it fail, from above: no on_event() comes of it. */
void client_call_fail(struct client_call *call, const char *fault, const char *text);

/* Idempotent; fine for zeroed memory. What the arena held is gone. */
void client_call_close(struct client_call *call);

#endif
