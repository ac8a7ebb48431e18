#include "base/iov.h"

#include "base/buf.h"

int iov_cut(struct iovec *out, int count_max, const struct iovec *iov, int count, size_t most,
            size_t *len)
{
    int used = 0;

    *len = 0;
    for (int i = 0; i < count && used < count_max && *len < most; i++) {
        size_t n = iov[i].iov_len < most - *len ? iov[i].iov_len : most - *len;

        out[used++] = (struct iovec){ iov[i].iov_base, n };
        *len += n;
    }
    return used;
}

size_t iov_copy(struct buf *to, const struct iovec *iov, int count, size_t skip, size_t most)
{
    size_t copied = 0;

    for (int i = 0; i < count && copied < most; i++) {
        size_t skipped = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        size_t left    = iov[i].iov_len - skipped;
        size_t n       = left < most - copied ? left : most - copied;

        buf_add(to, (const char *)iov[i].iov_base + skipped, n);
        skip -= skipped;
        copied += n;
    }
    return copied;
}
