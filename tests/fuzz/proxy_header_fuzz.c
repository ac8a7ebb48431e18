/* PROXY protocol headers: however the bytes are cut, the same is read, and nothing beyond them.
 * links: srv_net */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

static enum proxy_reading read_piece(struct proxy_header *out, const uint8_t *bytes, size_t len)
{
    char              *copy = malloc(len + !len); /* its end is the sanitizers' to watch */
    enum proxy_reading reading;

    must(copy != NULL);
    memcpy(copy, bytes, len);
    reading = proxy_header_read(out, str_make(copy, len));
    free(copy);
    return reading;
}

/* One byte less than all that was looked at is not enough, and just these are. */
static void check_done(const struct proxy_header *header, const uint8_t *bytes, size_t len)
{
    struct proxy_header again;

    must(header->used > 0 && header->used <= len && header->used <= PROXY_HEADER_V2_BYTES_MAX);
    must(!header->told || header->client.family == AF_INET || header->client.family == AF_INET6);
    must(read_piece(&again, bytes, header->used - 1) == PROXY_MORE);
    must(read_piece(&again, bytes, header->used) == PROXY_DONE);
    must(again.used == header->used && again.told == header->told);
    must(!header->told || addr_is_equal(&again.client, &header->client));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct proxy_header header, piece;
    enum proxy_reading  reading = read_piece(&header, bytes, len);

    if (reading == PROXY_DONE)
        check_done(&header, bytes, len);
    else if (reading == PROXY_BAD)
        must(header.fault != NULL);
    else
        must(len < PROXY_HEADER_V2_BYTES_MAX);
    /* What is good so far as a whole is so in each of its pieces. */
    if (reading != PROXY_BAD && len > 1)
        must(read_piece(&piece, bytes, len / 2) != PROXY_BAD);
    return 0;
}
