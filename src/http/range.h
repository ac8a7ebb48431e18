/* http/range.h - which bytes of a body a client asks for (RFC 9110, 14). */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include <stdint.h>

#include "base/str.h"

enum { RANGE_COUNT_MAX = 16 };

struct range {
    uint64_t first;
    uint64_t last; /* included */
};

enum range_verdict {
    RANGE_IGNORE,        /* no Range, another unit, malformed, or not worth it: the whole body */
    RANGE_PARTIAL,       /* 206 with what *RANGES holds */
    RANGE_UNSATISFIABLE, /* 416: all of them lie behind the end */
};

/* VALUE: the field's. RANGES has room for RANGE_COUNT_MAX; *COUNT is set with PARTIAL. More ranges
 * than that ask for much work with few bytes: they are ignored (14.2 lets a server do so). Those that
 * overlap or follow each other are joined (15.3.7.2). */
enum range_verdict range_parse(struct str value, uint64_t size, struct range *ranges,
                               unsigned *count);

#endif
