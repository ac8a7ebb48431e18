#include "ws/ws_encode.h"

#include <wslay/wslay.h>

#include "base/rand.h"

enum { COPY_KEPT = 64 * 1024 };

void ws_encoder_init(struct ws_encoder *encoder)
{
    *encoder = (struct ws_encoder){ 0 };
    buf_init(&encoder->copy, SIZE_MAX);
}

void ws_encoder_fini(struct ws_encoder *encoder)
{
    wslay_frame_context_free(encoder->plain);
    wslay_frame_context_free(encoder->masked);
    buf_fini(&encoder->copy);
}

/* --- what wslay asks for --------------------------------------------------------------------------- */

/* The head comes first, whole, and dies with the call; then the payload, from where it lies. */
static ssize_t take_piece(const uint8_t *data, size_t len, int flags, void *arg)
{
    struct ws_encoder *encoder = arg;
    struct iovec      *piece   = &encoder->pieces[encoder->piece_count++];

    *piece = (struct iovec){ (void *)data, len };
    if (piece == encoder->pieces) {
        memcpy(encoder->head, data, len);
        piece->iov_base = encoder->head;
    }
    return (ssize_t)len;
}

/* Masked bytes come by way of a buffer on wslay's stack. */
static ssize_t take_copy(const uint8_t *data, size_t len, int flags, void *arg)
{
    struct ws_encoder *encoder = arg;

    buf_add(&encoder->copy, data, len);
    return encoder->copy.failed ? -1 : (ssize_t)len;
}

/* Not to be guessed by whoever chose the payload (RFC 6455, 10.3). */
static int make_mask(uint8_t *to, size_t len, void *arg)
{
    rand_bytes(to, len);
    return 0;
}

/* --- encoding ----------------------------------------------------------------------------------------- */

static struct wslay_frame_context *context_of(struct ws_encoder *encoder, bool masked)
{
    const struct wslay_frame_callbacks calls = { masked ? take_copy : take_piece, NULL, make_mask };
    struct wslay_frame_context       **place = masked ? &encoder->masked : &encoder->plain;

    if (!*place && wslay_frame_context_init(place, &calls, encoder) != 0)
        *place = NULL;
    return *place;
}

static void forget_masked(struct ws_encoder *encoder)
{
    wslay_frame_context_free(encoder->masked); /* it stands inside of a frame */
    encoder->masked = NULL;
}

/* The copy becomes the one piece. */
static bool use_copy(struct ws_encoder *encoder)
{
    if (encoder->copy.failed) {
        forget_masked(encoder);
        return false;
    }
    encoder->pieces[0]   = (struct iovec){ encoder->copy.at, encoder->copy.len };
    encoder->piece_count = 1;
    return true;
}

bool ws_encode(struct ws_encoder *encoder, const struct ws_frame_head *head, struct str payload)
{
    struct wslay_frame_context *context = context_of(encoder, head->masked);
    struct wslay_frame_iocb     frame   = {
              .fin            = head->last,
              .rsv            = head->deflated ? WSLAY_RSV1_BIT : WSLAY_RSV_NONE,
              .opcode         = (uint8_t)head->opcode,
              .payload_length = payload.len,
              .mask           = head->masked,
              .data           = (const uint8_t *)payload.at,
              .data_length    = payload.len,
    };

    if (!context)
        return false;
    encoder->count++;
    encoder->piece_count = 0;
    buf_clear(&encoder->copy);
    wslay_frame_send(context, &frame);
    return !head->masked || use_copy(encoder);
}

void ws_encode_end(struct ws_encoder *encoder)
{
    buf_clear(&encoder->copy);
    buf_shrink(&encoder->copy, COPY_KEPT);
}
