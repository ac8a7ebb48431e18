/* http/h2_memory.h - memory for nghttp2, kept for use again: a stream costs it some six small blocks, and
 * a warm server gets them without asking malloc(). Of one worker's thread. */
#ifndef HTTP_H2_MEMORY_H
#define HTTP_H2_MEMORY_H

#include <nghttp2/nghttp2.h>

enum {
    H2_MEMORY_SIZES    = 5,   /* 64 bytes, then twice as many; what is larger is malloc()'s alone */
    H2_MEMORY_KEPT_MAX = 512, /* blocks of each size that wait for use */
};

struct h2_block;

struct h2_memory {
    nghttp2_mem      calls; /* for nghttp2: it is here as long as any session */
    struct h2_block *kept[H2_MEMORY_SIZES];
    unsigned         kept_count[H2_MEMORY_SIZES];
};

void h2_memory_init(struct h2_memory *memory);
/* All that was given out has come back. */
void h2_memory_fini(struct h2_memory *memory);

#endif
