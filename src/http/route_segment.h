/* http/route_segment.h - one segment of a path against one segment of a pattern. */
#ifndef HTTP_ROUTE_SEGMENT_H
#define HTTP_ROUTE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "http/route.h"

struct arena;
struct route_pattern;
struct route_segment;

/* How Lua patterns are asked; fn NULL: they accept nothing. */
struct route_accept {
    route_accept_fn fn;
    void           *arg;
};

/* A segment cut from a path as sent. */
struct route_cut {
    struct str text; /* decoded; as sent where an escape is bad */
    size_t     start;
    size_t     end; /* of what was sent: at "/" or the path's length */
    bool       bad;
};

void route_segment_cut(struct route_cut *cut, struct str path, size_t start, struct arena *arena);

/* Percent-decodes TEXT if it must. False: a bad escape, *OUT is TEXT. */
bool route_decode(struct str text, struct arena *arena, struct str *out);

bool route_value_fits(const struct route_param *param, struct str value,
                      struct route_accept accept);

/* Whether TEXT fits SEGMENT, which is no wildcard. PARAMS (NULL: not wanted) is the pattern's whole
 * table; the segment's own entries are set on success. */
bool route_segment_fits(const struct route_pattern *pattern, const struct route_segment *segment,
                        struct str text, struct route_accept accept, struct str *params);

#endif
