/* http/route_pattern.h - a parsed pattern from inside: for the router's own files. */
#ifndef HTTP_ROUTE_PATTERN_H
#define HTTP_ROUTE_PATTERN_H

#include <stdbool.h>

#include "base/str.h"
#include "http/route.h"

/* In order of precedence. */
enum route_class {
    ROUTE_FIXED,  /* text alone */
    ROUTE_PARTLY, /* a typed parameter, or parameters and text */
    ROUTE_PLAIN,  /* one parameter without a type */
    ROUTE_TAIL,   /* a wildcard */
};

/* Fixed text (param < 0) or a parameter. Two parameters never touch. */
struct route_part {
    struct str text;  /* decoded */
    int        param; /* index, or -1 */
};

struct route_segment {
    enum route_class class;
    unsigned first_part;
    unsigned part_count; /* 0: empty fixed text */
};

/* One block of memory holds all of it. */
struct route_pattern {
    struct str            text; /* as written */
    struct route_param   *params;
    struct route_part    *parts;
    struct route_segment *segments;
    unsigned              param_count;
    unsigned              part_count;
    unsigned              segment_count;
    bool                  slash;    /* ends in "/" */
    bool                  optional; /* the last segment may be missing */
};

/* A fixed segment's text. */
static inline struct str route_segment_text(const struct route_pattern *pattern,
                                            const struct route_segment *segment)
{
    return segment->part_count ? pattern->parts[segment->first_part].text : STR("");
}

/* The first parameter of a segment that is nothing but that parameter. */
static inline int route_segment_param(const struct route_pattern *pattern,
                                      const struct route_segment *segment)
{
    return pattern->parts[segment->first_part].param;
}

/* Whether both match the same texts, names apart. */
bool route_segment_is_same(const struct route_pattern *a, const struct route_segment *in_a,
                           const struct route_pattern *b, const struct route_segment *in_b);

#endif
