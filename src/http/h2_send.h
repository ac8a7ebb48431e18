/* http/h2_send.h - frames out. What is submitted lies in nghttp2 until h2_send_pump() moves it to the
 * connection's output, as much as has room there; DATA goes there without a copy between.
 *
 * nghttp2 chooses whose DATA is next: by the urgency that the client gave (RFC 9218), a frame of
 * 16 KiB at most from each in turn. */
#ifndef HTTP_H2_SEND_H
#define HTTP_H2_SEND_H

#include <nghttp2/nghttp2.h>
#include <sys/uio.h>

#include "http/h2_state.h"

/* HAS_BODY: DATA follows, from what the stream has ready; else the stream ends with the head. */
void h2_send_head(struct h2_stream *stream, const struct h2_fields *fields, bool has_body);
void h2_send_interim(struct h2_stream *stream, const struct h2_fields *fields);
/* Copies BODY, whatever its length. */
void h2_send_keep_all(struct h2_stream *stream, struct str body);
/* The stream is over, and what was kept of its body is of no use any more. */
void h2_send_drop(struct h2_stream *stream);
/* Copies as much of the body as has room (CONN_HIGH_BYTES in all): bytes kept, or -1 where there is none;
 * stream->wants_room then. */
ssize_t h2_send_keep(struct h2_stream *stream, const struct iovec *iov, int count);
/* There is more of the body, or its end. */
void h2_send_more(struct h2_stream *stream);
void h2_send_reset(struct h2_stream *stream, uint32_t code);

/* Bytes of body that no frame has taken. */
uint64_t h2_send_pending(const struct h2_stream *stream);

/* BYTES of the request's body were taken or dropped: the client may send as much anew. */
void h2_send_window(struct h2_stream *stream, uint64_t bytes);
/* The same for a stream that gets no window any more. */
void h2_send_conn_window(struct h2 *h2, uint64_t bytes);

/* Until nothing is left, or the output is full. */
void h2_send_pump(struct h2 *h2);

/* For nghttp2: a frame's head and LENGTH bytes of its stream go to the output. */
int h2_send_on_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t length, nghttp2_data_source *source, void *arg);

#endif
