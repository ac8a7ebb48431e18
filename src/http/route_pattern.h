/* http/route_pattern.h - patterns of paths and of hosts: parsed, asked, filled with values.
 *
 * Patterns (API, section 2):
 *
 *     /users/:id              one segment, not empty, percent-decoded once
 *     /opt/:name?             the segment and its slash may be missing; at the end only
 *     /files/<star>path       the rest, "" too (<star> is a star); at the end only; name "*" if none
 *     /near/:lat-:lng         several parameters and fixed text: each takes as little as it can
 *     /n/:id<int>             int number uuid slug hex date, words <en|de>, else a Lua pattern
 *     "::"  and two stars     a literal colon, a literal star
 *
 * Fixed text may be written percent-encoded or not: "/a%20b" is "/a b". */
#ifndef HTTP_ROUTE_PATTERN_H
#define HTTP_ROUTE_PATTERN_H

#include "base/str.h"
#include "http/route_value.h"

struct buf;
struct err;
struct route_pattern;

enum {
    ROUTE_PATTERN_BYTES_MAX = 1024,
    ROUTE_SEGMENTS_MAX      = 32, /* of one pattern, prefixes of mounts included */
    ROUTE_PARAMS_MAX        = 16, /* the same */
};

/* Parses TEXT, which must begin with "/" ("" counts as "/"). NULL: *ERR says what is wrong and
 * where. The pattern keeps a copy of TEXT. */
struct route_pattern *route_pattern_new(struct str text, struct err *err);
/* NULL is fine. */
void       route_pattern_free(struct route_pattern *pattern);
struct str route_pattern_text(const struct route_pattern *pattern);
unsigned   route_pattern_segments(const struct route_pattern *pattern);

/* Parameters from left to right: the order of a match's params. */
unsigned                  route_pattern_param_count(const struct route_pattern *pattern);
const struct route_param *route_pattern_param(const struct route_pattern *pattern, unsigned index);
/* Index of the first parameter whose name stands before it too, or -1. A mount's and its route's
 * may be equal, so this is no error here. */
int route_pattern_repeated(const struct route_pattern *pattern);

/* Appends the path for VALUES (one for each parameter, percent-encoded here; {NULL, 0} leaves an
 * optional one out). ERR_INVALID: a value is missing or does not fit its type, *ERR names it.
 * ACCEPTS NULL: Lua patterns are not looked at. */
int route_pattern_build(const struct route_pattern *pattern, const struct str *values,
                        route_accept_fn accepts, void *arg, struct buf *out, struct err *err);

/* A pattern for Host without its port: labels as segments are above (":tenant.example.com"), a
 * star as the first label takes one or more. Case does not count. */
struct route_pattern *route_host_new(struct str text, struct err *err);

#endif
