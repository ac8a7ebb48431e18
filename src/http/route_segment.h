/* http/route_segment.h - a pattern from inside, and one segment of it against one of a path. For the
 * router's own files. */
#ifndef HTTP_ROUTE_SEGMENT_H
#define HTTP_ROUTE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "http/route_value.h"

struct arena;

/* --- a parsed pattern ---------------------------------------------------------------------------- */

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

/* --- a path's segments --------------------------------------------------------------------------- */

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

/* Whether TEXT fits SEGMENT, which is no wildcard. PARAMS (NULL: not wanted) is the pattern's whole
 * table; the segment's own entries are set on success. */
bool route_segment_fits(const struct route_pattern *pattern, const struct route_segment *segment,
                        struct str text, struct route_accept accept, struct str *params);

#endif
