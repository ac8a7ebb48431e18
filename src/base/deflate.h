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

/* Raw deflate (RFC 1951) as permessage-deflate has it: a text need not end in a final block, its
 * writer flushes it instead, and whatever window it was written with is understood. DONE at a final block:
 * what is behind one begins a text of its own, after a reset. Both can be reset. NULL: no memory. */
struct coding *deflate_raw_reader_new(void);
struct coding *deflate_raw_writer_new(void);

#endif
