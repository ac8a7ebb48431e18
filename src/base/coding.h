/* base/coding.h - a content coding at work: bytes in, bytes out, whichever library does it and
 * whichever way it goes. base/deflate.h, base/brotli.h and base/zstd.h make them. */
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

enum {
    CODING_FLUSH_ROOM_MIN = 8, /* with less, zlib begins its mark of a flush again and again */
};

struct coding_ops {
    enum coding_step (*run)(struct coding *coding, struct str *in, bool last, char *out,
                            size_t room, size_t *made);
    enum coding_step (*flush)(struct coding *coding, char *out, size_t room, size_t *made);
    bool (*reset)(struct coding *coding); /* NULL: cannot be used again */
    void (*free)(struct coding *coding);
};

/* The head of what base/deflate.c and its like have. Readers have no flush(). */
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

/* Of a writer: what it holds back goes to OUT, so that the other side can read all that went in. MORE:
 * that was all. FULL: flush again, with more room, before anything else. ROOM is at least
 * CODING_FLUSH_ROOM_MIN. */
static inline enum coding_step coding_flush(struct coding *coding, char *out, size_t room,
                                            size_t *made)
{
    return coding->ops->flush(coding, out, room, made);
}

/* As new, for another text. False: it cannot be, free it. */
static inline bool coding_reset(struct coding *coding)
{
    return coding->ops->reset && coding->ops->reset(coding);
}

/* NULL is fine. */
static inline void coding_free(struct coding *coding)
{
    if (coding)
        coding->ops->free(coding);
}

#endif
