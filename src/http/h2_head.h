/* http/h2_head.h - from the fields of a header block to a request: what RFC 9113, 8.3 makes of them, and
 * then the same limits and rules as in HTTP/1, so that a handler sees no difference.
 *
 * nghttp2 has refused by now what RFC 9113 calls malformed: unknown, doubled or late pseudo fields,
 * upper case, fields of the connection, lengths that are none. Knows no nghttp2. */
#ifndef HTTP_H2_HEAD_H
#define HTTP_H2_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/h1_gate.h"

struct arena;
struct field;
struct request;

/* A block that is coming in: a request's head, or its trailers. */
struct h2_head {
    struct arena           *arena; /* the exchange's */
    const struct h1_limits *limits;
    struct field           *fields;
    unsigned                count, room;
    unsigned                lines;      /* of the header section in HTTP/1, also those not kept */
    unsigned                cookies;    /* of the fields */
    uint64_t                bytes;      /* of all that came, about as HTTP/1 would have sent it */
    uint64_t                line_bytes; /* of the request line in HTTP/1 */
    struct str              method, target, authority, protocol;
    struct h1_fault         fault; /* the first that was found; what comes then is passed over */
};

void h2_head_init(struct h2_head *head, struct arena *arena, const struct h1_limits *limits);

/* Copies both, NAME only unless it stays. Over a limit it goes on counting and keeps nothing. */
void h2_head_add(struct h2_head *head, struct str name, bool name_stays, struct str value);

/* The block is complete. ENDS: no body follows. False: head->fault says why; REQUEST can be answered,
 * not dispatched. */
bool h2_head_end(struct h2_head *head, struct request *request, bool ends);
bool h2_head_end_trailers(struct h2_head *head, struct request *request);

#endif
