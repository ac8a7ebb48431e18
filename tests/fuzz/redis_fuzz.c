/* Replies of a server that nobody should trust: however the bytes are cut, what is read is the same, and
 * nodes can be walked. links: srv_data */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "data/redis_reader.h"
#include "data/redis_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

static int drain(struct redis_reader *reader, struct buf *out)
{
    struct err err;
    int        rc;

    while ((rc = redis_reader_next(reader, out, &err)) > 0)
        ;
    return rc;
}

static int read_in_steps(const uint8_t *bytes, size_t len, size_t step, struct buf *out)
{
    struct redis_reader *reader;
    struct err           err;
    int                  rc = redis_reader_open(&reader, &err);

    must(rc == 0);
    while (rc == 0 && len > 0) {
        size_t n = len < step ? len : step;

        rc = redis_reader_feed(reader, bytes, n, &err);
        if (rc == 0)
            rc = drain(reader, out);
        bytes += n;
        len -= n;
    }
    redis_reader_close(reader);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct buf whole, pieces;
    struct str rest;

    buf_init(&whole, REDIS_REPLY_BYTES_MAX);
    buf_init(&pieces, REDIS_REPLY_BYTES_MAX);
    must(read_in_steps(bytes, len, SIZE_MAX, &whole) == read_in_steps(bytes, len, 1, &pieces));
    must(str_is(buf_str(&whole), buf_str(&pieces)));
    rest = buf_str(&whole);
    while (reply_skip(&rest)) /* ends, and stays within */
        ;
    buf_fini(&whole);
    buf_fini(&pieces);
    return 0;
}
