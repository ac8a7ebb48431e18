/* base/deflate.h - gzip and deflate by zlib, in pieces (base/coding.h). */
#ifndef BASE_DEFLATE_H
#define BASE_DEFLATE_H

struct coding;

/* Reads gzip (several members in a row are one text: RFC 1952, 2.2) and what HTTP calls deflate: the
 * zlib format, or raw deflate, which some servers send under that name. Heap: 10 KB and a window of
 * 32. NULL: no memory. */
struct coding *deflate_reader_new(void);

/* Writes gzip, in zlib's own balance of time and size. Heap: 260 KB. NULL: no memory. */
struct coding *gzip_writer_new(void);

#endif
