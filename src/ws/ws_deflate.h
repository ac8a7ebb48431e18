/* ws/ws_deflate.h - permessage-deflate's payloads (RFC 7692, 7.2), each by itself: no window is
 * carried from one message to the next, so one pair of zlib's states serves all sockets of a worker
 * and one compressed message fits all its receivers. */
#ifndef WS_WS_DEFLATE_H
#define WS_WS_DEFLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct coding;

enum {
    WS_DEFLATE_BYTES_MIN = 64,        /* a shorter message is sent as it is */
    WS_DEFLATE_KEPT      = 64 * 1024, /* bytes of a buffer that stay for the next one */
};

struct ws_deflater {
    struct coding *writer; /* both made at first need */
    struct coding *reader;
    struct buf     packed;
    struct buf     plain;
    uint64_t       packed_count; /* messages compressed so far */
};

void ws_deflater_init(struct ws_deflater *deflater);
void ws_deflater_fini(struct ws_deflater *deflater);

/* DATA compressed, valid until the next call. False: it does not get smaller, or no memory: send it as it is. */
bool ws_pack(struct ws_deflater *deflater, struct str data, struct str *packed);

/* 0, and what PACKED says, valid until the next call; or the code to close with: it is no deflate
 * (1007), more than LIMIT bytes (1009), or there is no memory (1011). */
unsigned ws_unpack(struct ws_deflater *deflater, struct str packed, uint64_t limit,
                   struct str *plain);

/* What was packed, or unpacked, is not needed any more: a large buffer is given back. */
void ws_pack_end(struct ws_deflater *deflater);
void ws_unpack_end(struct ws_deflater *deflater);

/* What a message of LIMIT bytes may take when compressed: deflate's stored blocks add a little. */
static inline uint64_t ws_packed_bytes_max(uint64_t limit)
{
    uint64_t more = limit / 256 + 64;

    return limit > UINT64_MAX - more ? UINT64_MAX : limit + more;
}

#endif
