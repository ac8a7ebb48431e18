/* http/h2_fields.h - the fields of an answer as nghttp2 wants them: lower case, without what belongs to
 * a connection of HTTP/1, and in memory that lasts until they are written. */
#ifndef HTTP_H2_FIELDS_H
#define HTTP_H2_FIELDS_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct answer;
struct arena;
struct clock_date;
struct field;

struct h2_fields {
    nghttp2_nv *at; /* in the arena, as all that it points to */
    size_t      count;
};

/* A final answer's. LENGTH: of its body, or ANSWER_LENGTH_UNKNOWN: nothing is said of it. DATE is used
 * unless the answer has a Date of its own. */
struct h2_fields h2_fields_of_answer(struct arena *arena, const struct answer *answer,
                                     uint64_t length, struct clock_date *date);
struct h2_fields h2_fields_of_interim(struct arena *arena, const struct answer *answer);
struct h2_fields h2_fields_of_trailers(struct arena *arena, const struct field *fields,
                                       unsigned count);

#endif
