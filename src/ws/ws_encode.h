/* ws/ws_encode.h - frames out (RFC 6455, 5.2), by wslay: a head and the payload where it lies, or
 * a masked copy. */
#ifndef WS_WS_ENCODE_H
#define WS_WS_ENCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/str.h"

struct wslay_frame_context;

enum ws_opcode {
    WS_OP_CONTINUATION = 0,
    WS_OP_TEXT         = 1,
    WS_OP_BINARY       = 2,
    WS_OP_CLOSE        = 8,
    WS_OP_PING         = 9,
    WS_OP_PONG         = 10,
};

enum {
    WS_HEAD_BYTES_MAX    = 14,
    WS_CONTROL_BYTES_MAX = 125,
    WS_PIECES_MAX        = 2,
};

/* A worker's. */
struct ws_encoder {
    struct wslay_frame_context *plain;  /* made at first need, as is the other one */
    struct wslay_frame_context *masked; /* its own, since wslay goes on masking once it has */
    struct iovec                pieces[WS_PIECES_MAX];
    int                         piece_count;
    char                        head[WS_HEAD_BYTES_MAX];
    struct buf                  copy;  /* of what is masked */
    uint64_t                    count; /* frames so far */
};

struct ws_frame_head {
    enum ws_opcode opcode;
    bool           last;     /* of its message */
    bool           deflated; /* RSV1: on a message's first frame */
    bool           masked;
};

void ws_encoder_init(struct ws_encoder *encoder);
void ws_encoder_fini(struct ws_encoder *encoder);

/* One frame, in encoder->pieces until the next call; they point into PAYLOAD unless it is masked.
 * False: no memory. */
bool ws_encode(struct ws_encoder *encoder, const struct ws_frame_head *head, struct str payload);

/* The pieces were sent: a large copy is given back. */
void ws_encode_end(struct ws_encoder *encoder);

#endif
