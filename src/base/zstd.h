/* base/zstd.h - zstd (RFC 8878) in pieces (base/coding.h). */
#ifndef BASE_ZSTD_H
#define BASE_ZSTD_H

struct coding;

/* Frames in a row are one text, so only the last byte ends it. Heap: up to the window of the sender's
 * choice, 8 MB at most (RFC 9659). NULL: no memory. */
struct coding *zstd_reader_new(void);

/* Writes at the library's own level. Heap: 1.5 MB at most. NULL: no memory. */
struct coding *zstd_writer_new(void);

#endif
