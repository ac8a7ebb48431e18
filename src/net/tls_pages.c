#include "net/tls_pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "net/tls_lib.h"

/* Of a buffer's beginning: the counter of records lies there. */
enum { KEPT_BYTES = 64 };

void tls_pages_init(struct tls_pages *pages, mbedtls_ssl_context *ssl)
{
    limit_init(&pages->limit);
    pages->ssl = ssl;
}

/* The pages that lie wholly inside LEN bytes. What follows them in the same allocation is not known
 * by name in 3.6, so LEN is less than the buffer has. */
static void drop_inside(unsigned char *buffer, size_t len)
{
    uintptr_t page  = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)buffer + KEPT_BYTES + page - 1) & ~(page - 1);
    uintptr_t end   = ((uintptr_t)buffer + len) & ~(page - 1);

    if (buffer && end > first)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

/* Where half a record has come, or a message of a handshake, bytes are waiting in the buffer. */
static bool is_at_rest(const mbedtls_ssl_context *ssl)
{
    return ssl->MBEDTLS_PRIVATE(state) == MBEDTLS_SSL_HANDSHAKE_OVER &&
           ssl->MBEDTLS_PRIVATE(in_left) == 0 && !ssl->MBEDTLS_PRIVATE(in_offt) &&
           ssl->MBEDTLS_PRIVATE(in_hslen) == 0 && !ssl->MBEDTLS_PRIVATE(keep_current_message) &&
           ssl->MBEDTLS_PRIVATE(out_left) == 0;
}

void tls_pages_on_idle(struct limit *limit)
{
    mbedtls_ssl_context *ssl = container_of(limit, struct tls_pages, limit)->ssl;

    if (!is_at_rest(ssl))
        return;
    drop_inside(ssl->MBEDTLS_PRIVATE(in_buf), MBEDTLS_SSL_IN_CONTENT_LEN);
    drop_inside(ssl->MBEDTLS_PRIVATE(out_buf), MBEDTLS_SSL_OUT_CONTENT_LEN);
}
