/* data/redis_reader.h - the protocol of Redis (RESP2), read by hiredis, which is loaded when the first
 * reader is made. One for each connection: what is half read goes with it. */
#ifndef DATA_REDIS_READER_H
#define DATA_REDIS_READER_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct redis_reader;

enum {
    REDIS_REPLY_BYTES_MAX = 64 * 1024 * 1024, /* of one reply, and of what is kept of it */
    REDIS_REPLY_DEPTH_MAX = 32,               /* arrays in arrays */
};

/* 0, ERR_UNSUPPORTED (there is no hiredis on this machine) or ERR_MEMORY. */
int  redis_reader_open(struct redis_reader **out, struct err *err);
void redis_reader_close(struct redis_reader *reader); /* NULL is fine */

/* Whoever takes replies out and may meet a redis_reader_close() meanwhile stands between these two: its
 * memory stays until then. leave() is false if it was closed. */
void redis_reader_enter(struct redis_reader *reader);
bool redis_reader_is_open(const struct redis_reader *reader);
bool redis_reader_leave(struct redis_reader *reader);

/* After an error the reader is of no use any more: ERR_INVALID (not the protocol), ERR_TOO_LARGE,
 * ERR_MEMORY. */
int redis_reader_feed(struct redis_reader *reader, const void *bytes, size_t len, struct err *err);
/* 1: *REPLY (data/redis_reply.h) was added to; 0: more bytes are needed; negative: an error. */
int redis_reader_next(struct redis_reader *reader, struct buf *reply, struct err *err);

/* "hiredis 1.2.0": what this build was made for. */
const char *redis_reader_library(void);

#endif
