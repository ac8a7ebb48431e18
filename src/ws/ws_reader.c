#include "ws/ws_reader.h"

#include <stdlib.h>
#include <wslay/wslay.h>

#include "ws/ws_deflate.h"

enum { MESSAGE_KEPT = 1024 }; /* bytes of a buffer that stay for the next message */

/* --- bytes to wslay -------------------------------------------------------------------------------- */

static ssize_t give_bytes(uint8_t *to, size_t room, int flags, void *arg)
{
    struct ws_reader *reader = arg;
    size_t            len    = reader->in->len < room ? reader->in->len : room;

    if (!len)
        return -1;
    memcpy(to, reader->in->at, len);
    *reader->in = str_from(*reader->in, len);
    reader->given += len;
    return (ssize_t)len;
}

struct ws_reader *ws_reader_new(void)
{
    static const struct wslay_frame_callbacks calls  = { .recv_callback = give_bytes };
    struct ws_reader                         *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return NULL;
    if (wslay_frame_context_init(&reader->frames, &calls, reader) != 0) {
        free(reader);
        return NULL;
    }
    list_init(&reader->link);
    limit_init(&reader->pace.limit);
    buf_init(&reader->message, SIZE_MAX);
    return reader;
}

void ws_reader_free(struct ws_reader *reader)
{
    wslay_frame_context_free(reader->frames);
    buf_fini(&reader->message);
    free(reader);
}

void ws_reader_drop(struct ws_reader *reader)
{
    buf_clear(&reader->message);
    buf_shrink(&reader->message, MESSAGE_KEPT);
}

bool ws_reader_is_at_rest(const struct ws_reader *reader)
{
    return !reader->in_frame && !reader->in_message && reader->given == reader->used;
}

/* --- a frame's head --------------------------------------------------------------------------------- */

static bool broken(struct ws_reader *reader, unsigned code, const char *reason)
{
    reader->code   = code;
    reader->reason = reason;
    return false;
}

static bool is_control(enum ws_opcode opcode)
{
    return opcode >= WS_OP_CLOSE;
}

static size_t head_bytes(const struct wslay_frame_iocb *frame)
{
    size_t length = frame->payload_length > 0xffff ? 8 : frame->payload_length > 125 ? 2 : 0;

    return 2 + length + (frame->mask ? 4 : 0);
}

static bool is_known(unsigned opcode)
{
    return opcode <= WS_OP_BINARY || (opcode >= WS_OP_CLOSE && opcode <= WS_OP_PONG);
}

/* RSV1 belongs to a compressed message's first frame (RFC 7692, 6), the others to nothing. */
static bool has_good_bits(const struct wslay_frame_iocb *frame, const struct ws_rules *rules)
{
    bool starts = frame->opcode == WS_OP_TEXT || frame->opcode == WS_OP_BINARY;

    return frame->rsv == WSLAY_RSV_NONE ||
           (frame->rsv == WSLAY_RSV1_BIT && rules->deflate && starts);
}

static bool begin_message(struct ws_reader *reader, const struct wslay_frame_iocb *frame)
{
    if (reader->in_message)
        return broken(reader, WS_CODE_PROTOCOL, "a message begins inside another");
    reader->in_message = true;
    reader->kind       = frame->opcode == WS_OP_TEXT ? WS_TEXT : WS_BINARY;
    reader->deflated   = frame->rsv != WSLAY_RSV_NONE;
    reader->utf8       = (struct ws_utf8){ 0 };
    return true;
}

/* Before any byte of it is kept. */
static bool fits(const struct ws_reader *reader, uint64_t more, uint64_t limit)
{
    uint64_t bytes_max = reader->deflated ? ws_packed_bytes_max(limit) : limit;

    return reader->message.len <= bytes_max && more <= bytes_max - reader->message.len;
}

static bool begin_data(struct ws_reader *reader, const struct wslay_frame_iocb *frame,
                       const struct ws_rules *rules, bool discard)
{
    if (frame->opcode != WS_OP_CONTINUATION) {
        if (!begin_message(reader, frame))
            return false;
    } else if (!reader->in_message) {
        return broken(reader, WS_CODE_PROTOCOL, "nothing to continue");
    }
    if (!discard && !fits(reader, frame->payload_length, rules->limit))
        return broken(reader, WS_CODE_TOO_LARGE, "message too large");
    return true;
}

static bool begin_frame(struct ws_reader *reader, const struct wslay_frame_iocb *frame,
                        const struct ws_rules *rules, bool discard)
{
    if (!is_known(frame->opcode))
        return broken(reader, WS_CODE_PROTOCOL, "unknown opcode");
    if (!has_good_bits(frame, rules))
        return broken(reader, WS_CODE_PROTOCOL, "reserved bits are set");
    if ((frame->mask != 0) != rules->masked)
        return broken(reader, WS_CODE_PROTOCOL,
                      rules->masked ? "frame is not masked" : "frame is masked");
    reader->in_frame    = true;
    reader->opcode      = (enum ws_opcode)frame->opcode;
    reader->left        = frame->payload_length;
    reader->control_len = 0;
    reader->used += head_bytes(frame);
    return is_control(reader->opcode) || begin_data(reader, frame, rules, discard);
}

/* --- its payload -------------------------------------------------------------------------------------- */

/* What comes in one piece stays where wslay has it. */
static bool take_data(struct ws_reader *reader, struct str piece, bool last)
{
    if (reader->kind == WS_TEXT && !reader->deflated && !ws_utf8_feed(&reader->utf8, piece))
        return broken(reader, WS_CODE_BAD_DATA, "text is not UTF-8");
    if (last && reader->message.len == 0) {
        reader->data = piece;
        return true;
    }
    buf_add_str(&reader->message, piece);
    reader->data = buf_str(&reader->message);
    if (reader->message.failed)
        return broken(reader, WS_CODE_INTERNAL, "out of memory");
    return true;
}

static void take_control(struct ws_reader *reader, struct str piece)
{
    if (piece.len)
        memcpy(reader->control + reader->control_len, piece.at, piece.len);
    reader->control_len += (unsigned)piece.len;
    reader->data = str_make(reader->control, reader->control_len);
}

static bool take_piece(struct ws_reader *reader, const struct wslay_frame_iocb *frame, bool discard)
{
    struct str piece = str_make((const char *)frame->data, frame->data_length);

    reader->piece_len = piece.len;
    reader->used += piece.len;
    reader->left -= piece.len;
    if (is_control(reader->opcode))
        take_control(reader, piece);
    else if (!discard)
        return take_data(reader, piece, frame->fin && reader->left == 0);
    return true;
}

/* --- its end -------------------------------------------------------------------------------------------- */

static enum ws_step end_message(struct ws_reader *reader, bool discard)
{
    reader->in_message = false;
    if (discard)
        return WS_STEP_PART;
    if (reader->kind == WS_TEXT && !reader->deflated && !ws_utf8_is_whole(&reader->utf8)) {
        broken(reader, WS_CODE_BAD_DATA, "text is not UTF-8");
        return WS_STEP_BROKEN;
    }
    return WS_STEP_MESSAGE;
}

static enum ws_step end_piece(struct ws_reader *reader, bool last, bool discard)
{
    if (reader->left > 0)
        return WS_STEP_PART;
    reader->in_frame = false;
    if (is_control(reader->opcode))
        return WS_STEP_CONTROL;
    return last ? end_message(reader, discard) : WS_STEP_PART;
}

enum ws_step ws_reader_step(struct ws_reader *reader, struct str *in, const struct ws_rules *rules,
                            bool discard)
{
    struct wslay_frame_iocb frame;
    ssize_t                 got;

    if (!reader->in_message)
        ws_reader_drop(reader);
    reader->in = in;
    got        = wslay_frame_recv(reader->frames, &frame);
    if (got == WSLAY_ERR_WANT_READ)
        return WS_STEP_WANT;
    if (got < 0) {
        broken(reader, WS_CODE_PROTOCOL, "malformed frame");
        return WS_STEP_BROKEN;
    }
    if (!reader->in_frame && !begin_frame(reader, &frame, rules, discard))
        return WS_STEP_BROKEN;
    if (!take_piece(reader, &frame, discard))
        return WS_STEP_BROKEN;
    return end_piece(reader, frame.fin, discard);
}
