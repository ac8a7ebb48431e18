/* http/h2_wire.h - what the work asks of a stream by exchange_...(): state, and frames that are
 * submitted. Nobody is called. */
#ifndef HTTP_H2_WIRE_H
#define HTTP_H2_WIRE_H

#include "http/h2_state.h"

extern const struct exchange_wire h2_wire;

/* The wire's own answer: a problem (RFC 9457). The answer has ended by it. */
void h2_wire_problem(struct h2_stream *stream, unsigned status, const char *reason);

/* Nothing more is taken of the request's body; the stream lives on for the answer. */
void h2_wire_break_body(struct h2_stream *stream, unsigned short status, const char *reason);
/* Whether more has come or is announced than the exchange takes. */
bool h2_wire_is_too_large(const struct exchange *ex);

#endif
