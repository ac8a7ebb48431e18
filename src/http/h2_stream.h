/* http/h2_stream.h - the life of a stream: it begins with a header block, its exchange is dispatched, its
 * work hears what there is to hear, and it ends once: answered, cut or lost. */
#ifndef HTTP_H2_STREAM_H
#define HTTP_H2_STREAM_H

#include "http/h2_state.h"

struct h2_stream *h2_stream_new(struct h2 *h2, int32_t id);

/* The head is complete: the dispatcher has it, or the wire answers. */
void h2_stream_dispatch(struct h2_stream *stream);

/* What has happened since is told; ends the stream if that was the last of it. */
void h2_stream_tell(struct h2_stream *stream);

/* Those whose last byte has gone to the kernel. */
void h2_stream_tell_answered(struct h2 *h2);

/* The stream ends before its answer does, or before that was written: who works on it hears WHY. */
void h2_stream_lost(struct h2_stream *stream, enum gone_why why);

/* The client has ended its direction: no more of the request comes. May end the stream. */
void h2_stream_hears_no_more(struct h2_stream *stream);

/* It has bytes to send, the connection could take them, and the client has opened no window. */
bool h2_stream_waits_for_window(const struct h2_stream *stream);

/* Looks whether the client is too slow; may end the stream. */
void h2_stream_tick(struct h2_stream *stream, uint64_t now_ms);

#endif
