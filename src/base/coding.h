/* base/coding.h - a content coding at work: bytes in, bytes out, whichever library does it and
 * whichever way it goes. base/deflate.h and base/brotli.h make them. */
#ifndef BASE_CODING_H
#define BASE_CODING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct coding;

enum coding_step {
    CODING_MORE,   /* all of IN is used up, and nothing waits for room in OUT */
    CODING_FULL,   /* OUT is full: come back with the same IN and more room */
    CODING_DONE,   /* the coded data has ended; what is left of IN does not belong to it */
    CODING_BROKEN, /* malformed, cut short, or out of memory */
};

struct coding_ops {
    enum coding_step (*run)(struct coding *coding, struct str *in, bool last, char *out,
                            size_t room, size_t *made);
    void (*free)(struct coding *coding);
};

/* The head of what base/deflate.c and base/brotli.c have. */
struct coding {
    const struct coding_ops *ops;
};

/* Takes bytes off the front of *IN and puts at most ROOM to OUT, *MADE of them. LAST: nothing comes
 * behind IN, so data that has not ended by then is BROKEN. Memory is bounded by the coding's window
 * alone; how much comes out in all is the caller's to count. */
static inline enum coding_step coding_run(struct coding *coding, struct str *in, bool last,
                                          char *out, size_t room, size_t *made)
{
    return coding->ops->run(coding, in, last, out, room, made);
}

/* NULL is fine. */
static inline void coding_free(struct coding *coding)
{
    if (coding)
        coding->ops->free(coding);
}

#endif
