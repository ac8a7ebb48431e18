/* base/iov.h - bytes in pieces (struct iovec), as writes take them: how many, the first of them, the
 * rest. */
#ifndef BASE_IOV_H
#define BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

struct buf;

static inline size_t iov_len(const struct iovec *iov, int count)
{
    size_t len = 0;

    for (int i = 0; i < count; i++)
        len += iov[i].iov_len;
    return len;
}

/* The first MOST bytes of IOV, in OUT, which holds COUNT_MAX pieces. How many pieces; *LEN is how many
 * bytes: fewer where OUT is full. */
int iov_cut(struct iovec *out, int count_max, const struct iovec *iov, int count, size_t most,
            size_t *len);

/* Appends what lies behind the first SKIP bytes of IOV, MOST bytes of it, to TO. How many bytes. */
size_t iov_copy(struct buf *to, const struct iovec *iov, int count, size_t skip, size_t most);

#endif
