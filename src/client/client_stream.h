/* client/client_stream.h - a call (client/client_call.h) as a stream of a connection that it shares. */
#ifndef CLIENT_CLIENT_STREAM_H
#define CLIENT_CLIENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"

struct client_call;
struct h2_client_events;

extern const struct h2_client_events CLIENT_STREAM_EVENTS;

/* The request of a call that holds its connection. False: the call has failed. */
bool client_stream_begin(struct client_call *call);

/* The next of the body lies in `data`: bytes, CALL_WAIT, CALL_END or CALL_FAIL. What was there before is
 * done with. */
ssize_t client_stream_next(struct client_call *call);

/* Of DATA, taken. */
size_t client_stream_write(struct client_call *call, struct str data);
void   client_stream_end_body(struct client_call *call);

#endif
