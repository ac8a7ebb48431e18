/* http/h1_response.h - what a response's head means (RFC 9112, 6): framing, length, persistence.
 *
 * As http/h1_rules.h for requests: the bytes are well-formed and parsed by now, and where the RFC
 * lets a client guess how long a body is, the response is refused. */
#ifndef HTTP_H1_RESPONSE_H
#define HTTP_H1_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

struct field;
struct h1_fault;

enum response_framing {
    RESPONSE_NO_BODY, /* to HEAD, 1xx, 204, 304 */
    RESPONSE_LENGTH,
    RESPONSE_CHUNKED,
    RESPONSE_UNTIL_CLOSE, /* whether it came whole cannot be told */
};

/* Spans point into the arena of whoever parses. */
struct response {
    unsigned              status; /* 100-599 */
    unsigned char         version_minor;
    struct field         *fields; /* names in lower case, in order of arrival */
    unsigned              field_count;
    struct field         *trailers; /* once the body has ended */
    unsigned              trailer_count;
    enum response_framing framing;
    uint64_t              content_length; /* as announced, also to HEAD; UINT64_MAX: it was not */
    bool                  keep_alive;
};

/* RESPONSE has status, version and fields; the rest is filled in here. False: *FAULT says why. */
bool h1_response_apply(struct response *response, bool answers_head, struct h1_fault *fault);

#endif
