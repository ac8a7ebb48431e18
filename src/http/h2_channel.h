/* http/h2_channel.h - a stream after an extended CONNECT (RFC 8441): its DATA is a channel's
 * (http/channel.h). Private to http/. */
#ifndef HTTP_H2_CHANNEL_H
#define HTTP_H2_CHANNEL_H

#include "http/h2_state.h"

/* In the stream's arena, and its own from here on. */
struct channel *h2_channel_new(struct h2_stream *stream);

/* For the stream's news. True: the user was told something. */
void h2_channel_tell(struct h2_stream *stream);
/* The stream dies: the user hears WHY, unless it has let go. */
void h2_channel_lost(struct h2_stream *stream, enum gone_why why);

#endif
