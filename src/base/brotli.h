/* base/brotli.h - brotli (RFC 7932) in pieces (base/coding.h). */
#ifndef BASE_BROTLI_H
#define BASE_BROTLI_H

struct coding;

/* Heap: up to the window of the sender's choice, 16 MB at most (large windows are refused). NULL: no
 * memory. */
struct coding *brotli_reader_new(void);

/* Writes at a quality for answers that are made as they are asked for. Heap: 2 MB at most. NULL: no
 * memory. */
struct coding *brotli_writer_new(void);

#endif
