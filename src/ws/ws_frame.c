#include "ws/ws_frame.h"

#include <stdlib.h>

#include "base/buf.h"
#include "ws/ws_deflate.h"
#include "ws/ws_encode.h"
#include "ws/ws_shared.h"
#include "ws/ws_utf8.h"

struct ws_frame {
    struct ws_shared *shared; /* borrowed */
    enum ws_kind      kind;
    size_t            data_len; /* at the end of `plain` */
    struct buf        plain;
    struct buf        deflated; /* empty: not asked for yet, or not worth it */
    bool              tried;    /* it was asked for */
};

static bool encode(struct ws_frame *frame, struct buf *out, bool deflated, struct str payload)
{
    struct ws_encoder         *encoder = &frame->shared->encoder;
    const struct ws_frame_head head    = {
           .opcode   = frame->kind == WS_TEXT ? WS_OP_TEXT : WS_OP_BINARY,
           .last     = true,
           .deflated = deflated,
    };

    buf_init(out, SIZE_MAX);
    if (!ws_encode(encoder, &head, payload) ||
        !buf_grow(out, encoder->pieces[0].iov_len + payload.len))
        return false;
    for (int i = 0; i < encoder->piece_count; i++)
        buf_add(out, encoder->pieces[i].iov_base, encoder->pieces[i].iov_len);
    return true;
}

int ws_frame_new(struct ws_frame **out, struct ws_shared *shared, enum ws_kind kind,
                 struct str data)
{
    struct ws_frame *frame;

    if (kind == WS_TEXT && !ws_utf8_is_text(data))
        return WS_NOT_TEXT;
    frame = malloc(sizeof(*frame));
    if (!frame)
        return WS_MEMORY;
    *frame = (struct ws_frame){ .shared = shared, .kind = kind, .data_len = data.len };
    buf_init(&frame->deflated, SIZE_MAX);
    if (!encode(frame, &frame->plain, false, data)) {
        ws_frame_free(frame);
        return WS_MEMORY;
    }
    *out = frame;
    return 0;
}

void ws_frame_free(struct ws_frame *frame)
{
    if (!frame)
        return;
    buf_fini(&frame->plain);
    buf_fini(&frame->deflated);
    free(frame);
}

enum ws_kind ws_frame_kind(const struct ws_frame *frame)
{
    return frame->kind;
}

struct str ws_frame_data(const struct ws_frame *frame)
{
    return str_from(buf_str(&frame->plain), frame->plain.len - frame->data_len);
}

/* Without memory for it, the plain one does. */
static void deflate_once(struct ws_frame *frame)
{
    struct str data = ws_frame_data(frame), packed;

    frame->tried = true;
    if (data.len >= WS_DEFLATE_BYTES_MIN && ws_pack(&frame->shared->deflater, data, &packed) &&
        !encode(frame, &frame->deflated, true, packed))
        buf_fini(&frame->deflated);
    ws_pack_end(&frame->shared->deflater);
}

struct str ws_frame_bytes(struct ws_frame *frame, bool deflated)
{
    if (deflated && !frame->tried)
        deflate_once(frame);
    return buf_str(deflated && frame->deflated.len ? &frame->deflated : &frame->plain);
}
