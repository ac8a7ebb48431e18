/* http/h1_parse.h - from bytes that have passed the gate to a request or a response and its body, by
 * http-parser.
 *
 * The one home of that library: the head goes through it in one go, a chunked body element by
 * element. The gate (http/h1_gate.h) says what may be parsed and how far; the parser decides what
 * it is. Where the two disagree the request is refused. */
#ifndef HTTP_H1_PARSE_H
#define HTTP_H1_PARSE_H

#include "base/str.h"
#include "http/h1_gate.h"

struct arena;
struct request;
struct response;

/* A body while it arrives. In the exchange's arena, or its call's. */
struct h1_body {
    bool                 chunked;
    uint64_t             left;      /* without chunks: bytes still to come; UINT64_MAX: until FIN */
    struct h1_chunk_gate gate;      /* with chunks */
    uint64_t             parser[4]; /* http-parser's state between elements */
};

/* Once for each thread that parses, before it does. */
void h1_parse_init(void);

/* HEAD: the whole head as the gate passed it, without an empty line before it; FIELDS: how many it
 * counted. All spans of *REQUEST point into ARENA, HEAD may go. BODY is ready for what follows.
 * False: *FAULT says why. */
bool h1_parse_head(struct arena *arena, struct str head, unsigned fields, struct request *request,
                   struct h1_body *body, struct h1_fault *fault);

/* Reads on in the body. *USED bytes are done with and *DATA, a part of them, is body data (often
 * empty). MORE and *USED = 0: offer these bytes again with more behind them. DONE: the body ends
 * with *USED, and request->trailers are set. REFUSED: body->gate.fault says why. */
enum h1_reading h1_parse_body(struct arena *arena, struct h1_body *body,
                              const struct h1_limits *limits, const char *bytes, size_t len,
                              size_t *used, struct str *data, struct request *request);

/* The same for responses, of http/h1_response.h. ANSWERS_HEAD: the request's method was HEAD, so no
 * body follows whatever the fields say. */
bool h1_parse_response_head(struct arena *arena, struct str head, unsigned fields,
                            bool answers_head, struct response *response, struct h1_body *body,
                            struct h1_fault *fault);
/* A body that ends with the connection is never DONE here: the FIN is its end. */
enum h1_reading h1_parse_response_body(struct arena *arena, struct h1_body *body,
                                       const struct h1_limits *limits, const char *bytes,
                                       size_t len, size_t *used, struct str *data,
                                       struct response *response);

/* Bytes of data that are announced so far: all of them, or those of the chunks that have begun. */
uint64_t h1_body_announced(const struct h1_body *body, const struct request *request);

#endif
