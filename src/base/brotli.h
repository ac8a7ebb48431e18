/* base/brotli.h - brotli (RFC 7932) in pieces (base/coding.h). */
#ifndef BASE_BROTLI_H
#define BASE_BROTLI_H

struct coding;

/* Heap: up to the window of the sender's choice, 16 MB at most (large windows are refused). NULL: no
 * memory. */
struct coding *brotli_reader_new(void);

#endif
