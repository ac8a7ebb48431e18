#include "ws/ws_deflate.h"

#include "base/coding.h"
#include "base/deflate.h"
#include "ws/ws_code.h"

enum { STEP_BYTES = 16 * 1024 };

/* What a flush ends with, and every message leaves out (RFC 7692, 7.2.1). */
static const struct str TAIL = STR_INIT("\x00\x00\xff\xff");

void ws_deflater_init(struct ws_deflater *deflater)
{
    *deflater = (struct ws_deflater){ 0 };
    buf_init(&deflater->packed, SIZE_MAX);
    buf_init(&deflater->plain, SIZE_MAX);
}

void ws_deflater_fini(struct ws_deflater *deflater)
{
    coding_free(deflater->writer);
    coding_free(deflater->reader);
    buf_fini(&deflater->packed);
    buf_fini(&deflater->plain);
}

static void empty(struct buf *buf)
{
    buf_clear(buf);
    buf_shrink(buf, WS_DEFLATE_KEPT);
}

void ws_pack_end(struct ws_deflater *deflater)
{
    empty(&deflater->packed);
}

void ws_unpack_end(struct ws_deflater *deflater)
{
    empty(&deflater->plain);
}

/* --- out ------------------------------------------------------------------------------------------- */

static bool ready(struct coding **coding, struct coding *(*make)(void))
{
    if (*coding)
        return coding_reset(*coding);
    *coding = make();
    return *coding != NULL;
}

/* All of DATA and the mark of a flush behind it. */
static bool pack_all(struct coding *writer, struct str data, struct buf *out)
{
    enum coding_step step     = CODING_FULL;
    bool             flushing = false;

    while (step == CODING_FULL || !flushing) {
        char  *to   = buf_reserve(out, STEP_BYTES);
        size_t made = 0;

        if (!to)
            return false;
        flushing = flushing || step == CODING_MORE;
        step     = flushing ? coding_flush(writer, to, STEP_BYTES, &made)
                            : coding_run(writer, &data, false, to, STEP_BYTES, &made);
        out->len += made;
        if (step == CODING_BROKEN)
            return false;
    }
    return true;
}

bool ws_pack(struct ws_deflater *deflater, struct str data, struct str *packed)
{
    struct buf *out = &deflater->packed;

    buf_clear(out);
    if (!ready(&deflater->writer, deflate_raw_writer_new) || !pack_all(deflater->writer, data, out))
        return false;
    deflater->packed_count++;
    *packed = buf_str(out);
    if (str_ends_with(*packed, TAIL))
        packed->len -= TAIL.len;
    return packed->len < data.len;
}

/* --- in --------------------------------------------------------------------------------------------- */

/* One byte more than LIMIT has room, so that what is too large shows. */
static size_t room_for(const struct buf *out, uint64_t limit)
{
    uint64_t left = limit - out->len + 1;

    return left < STEP_BYTES ? (size_t)left : STEP_BYTES;
}

/* A message may hold final blocks (RFC 7692, 7.2.3.4), behind which deflate begins anew. */
static unsigned unpack_piece(struct coding *reader, struct str in, uint64_t limit, struct buf *out)
{
    for (;;) {
        size_t           room = room_for(out, limit), made = 0;
        char            *to = buf_reserve(out, room);
        enum coding_step step;

        if (!to)
            return WS_CODE_INTERNAL;
        step = coding_run(reader, &in, false, to, room, &made);
        out->len += made;
        if (out->len > limit)
            return WS_CODE_TOO_LARGE;
        if (step == CODING_BROKEN || (step == CODING_DONE && !coding_reset(reader)))
            return WS_CODE_BAD_DATA;
        if (step == CODING_MORE || (step == CODING_DONE && !in.len))
            return 0;
    }
}

unsigned ws_unpack(struct ws_deflater *deflater, struct str packed, uint64_t limit,
                   struct str *plain)
{
    struct buf *out = &deflater->plain;
    unsigned    code;

    *plain = STR_NONE;
    buf_clear(out);
    if (!ready(&deflater->reader, deflate_raw_reader_new))
        return WS_CODE_INTERNAL;
    code = unpack_piece(deflater->reader, packed, limit, out);
    if (code == 0)
        code = unpack_piece(deflater->reader, TAIL, limit, out);
    *plain = buf_str(out);
    return code;
}
