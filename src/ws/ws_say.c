#include "ws/ws_say.h"

#include "http/channel.h"
#include "ws/ws_deflate.h"
#include "ws/ws_encode.h"
#include "ws/ws_frame.h"
#include "ws/ws_impl.h"

/* --- frames ----------------------------------------------------------------------------------------- */

/* Torn frames cannot be mended: the socket is cut in its next event. */
static int fail_for_memory(struct ws *ws)
{
    ws->failed = true;
    channel_wake(ws->channel);
    return WS_MEMORY;
}

static int send_frame(struct ws *ws, struct ws_frame_head head, struct str payload)
{
    struct ws_encoder *encoder = &ws->shared->encoder;
    bool               sent;

    head.masked = ws->client;
    sent        = ws_encode(encoder, &head, payload) &&
           ws_output_put(&ws->output, ws->channel, encoder->pieces, encoder->piece_count);
    ws_encode_end(encoder);
    return sent ? 0 : fail_for_memory(ws);
}

void ws_say_control(struct ws *ws, enum ws_opcode opcode, struct str payload)
{
    send_frame(ws, (struct ws_frame_head){ .opcode = opcode, .last = true }, payload);
}

void ws_say_close(struct ws *ws, unsigned code, struct str reason)
{
    char   payload[WS_CONTROL_BYTES_MAX] = { (char)(code >> 8), (char)code };
    size_t len                           = code == WS_CODE_NONE ? 0 : 2;

    if (len && reason.len) {
        memcpy(payload + len, reason.at, reason.len);
        len += reason.len;
    }
    ws_say_control(ws, WS_OP_CLOSE, str_make(payload, len));
}

/* --- messages --------------------------------------------------------------------------------------- */

/* PAYLOAD as one frame or several; RSV1 stands on the first. */
static int send_parts(struct ws *ws, struct ws_frame_head head, struct str payload)
{
    int rc = 0;

    while (rc == 0 && !head.last) {
        bool cuts = ws->fragment && payload.len > ws->fragment;

        head.last = !cuts;
        rc        = send_frame(ws, head, cuts ? str_make(payload.at, ws->fragment) : payload);
        if (cuts)
            payload = str_from(payload, ws->fragment);
        head = (struct ws_frame_head){ .opcode = WS_OP_CONTINUATION, .last = head.last };
    }
    return rc;
}

static bool is_worth_packing(const struct ws *ws, size_t len)
{
    return len >= WS_DEFLATE_BYTES_MIN && len <= ws->deflate_max;
}

int ws_say_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct ws_deflater  *deflater = &ws->shared->deflater;
    struct ws_frame_head head     = { .opcode = kind == WS_TEXT ? WS_OP_TEXT : WS_OP_BINARY };
    struct str           packed;
    int                  rc;

    head.deflated = is_worth_packing(ws, data.len) && ws_pack(deflater, data, &packed);
    rc            = send_parts(ws, head, head.deflated ? packed : data);
    ws_pack_end(deflater);
    if (rc == 0)
        ws->shared->counts.messages_out++;
    return rc;
}

/* A client's is masked, so it makes its own frame. */
int ws_say_shared(struct ws *ws, struct ws_frame *frame)
{
    struct str   data = ws_frame_data(frame), bytes;
    struct iovec piece;

    if (ws->client)
        return ws_say_message(ws, ws_frame_kind(frame), data);
    bytes = ws_frame_bytes(frame, is_worth_packing(ws, data.len));
    piece = (struct iovec){ (void *)bytes.at, bytes.len };
    if (!ws_output_put(&ws->output, ws->channel, &piece, 1))
        return fail_for_memory(ws);
    ws->shared->counts.messages_out++;
    return 0;
}
