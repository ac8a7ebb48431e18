#include "base/zstd.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/coding.h"
#include "base/compiler.h"

enum {
    MAGIC_BYTES       = 4,
    READ_WINDOW_BITS  = 23, /* RFC 9659: nobody may send larger ones under this name */
    WRITE_WINDOW_BITS = 18, /* answers are seldom longer, and each bit doubles the memory */
    LEVEL             = 3,  /* the library's default */
};

/* --- reading ----------------------------------------------------------------------------------------- */

struct reader {
    struct coding coding;
    ZSTD_DCtx    *state;
    bool          begun;
    bool          in_frame;
    unsigned char magic[MAGIC_BYTES];
    unsigned      magic_len; /* of a frame whose first bytes have not all come */
};

static struct reader *reader_of(struct coding *coding)
{
    return container_of(coding, struct reader, coding);
}

/* Of a frame, or of one to skip (RFC 8878, 3.1.1 and 3.1.2). */
static bool is_magic(const unsigned char *magic)
{
    static const unsigned char FRAME[] = { 0x28, 0xb5, 0x2f, 0xfd };
    static const unsigned char SKIP[]  = { 0x2a, 0x4d, 0x18 };

    return memcmp(magic, FRAME, sizeof(FRAME)) == 0 ||
           ((magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, SKIP, sizeof(SKIP)) == 0);
}

/* A frame's first bytes are looked at here and go in alone. Given more, the library reads formats from
 * before the RFC as well, and makes a frame that is all there in one go, by code of its own that takes
 * and refuses other malformed ones: how the input is cut would decide. */
static bool begin_frame(struct reader *reader, ZSTD_inBuffer *in)
{
    ZSTD_inBuffer  magic = { reader->magic, MAGIC_BYTES, 0 };
    ZSTD_outBuffer none  = { NULL, 0, 0 };

    while (in->pos < in->size && reader->magic_len < MAGIC_BYTES)
        reader->magic[reader->magic_len++] = ((const unsigned char *)in->src)[in->pos++];
    if (reader->magic_len < MAGIC_BYTES)
        return true;
    reader->magic_len = 0;
    reader->begun = reader->in_frame = true;
    return is_magic(reader->magic) &&
           !ZSTD_isError(ZSTD_decompressStream(reader->state, &none, &magic));
}

/* Frames until IN or OUT is used up. False: malformed. */
static bool decode(struct reader *reader, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
    while (in->pos < in->size || reader->in_frame) {
        size_t before = in->pos, made = out->pos, rc;

        if (!reader->in_frame) {
            if (!begin_frame(reader, in))
                return false;
            continue;
        }
        rc = ZSTD_decompressStream(reader->state, out, in);
        if (ZSTD_isError(rc))
            return false;
        reader->in_frame = rc != 0;
        if (out->pos == out->size || (in->pos == before && out->pos == made))
            break;
    }
    return true;
}

static enum coding_step run(struct coding *coding, struct str *in, bool last, char *out,
                            size_t room, size_t *made)
{
    struct reader *reader = reader_of(coding);
    ZSTD_inBuffer  from   = { in->at, in->len, 0 };
    ZSTD_outBuffer to     = { out, room, 0 };
    bool           sound  = decode(reader, &from, &to);

    *in   = str_from(*in, from.pos);
    *made = to.pos;
    if (!sound)
        return CODING_BROKEN;
    if (to.pos == room && (in->len || reader->in_frame))
        return CODING_FULL;
    if (!last)
        return CODING_MORE;
    return reader->begun && !reader->in_frame && !reader->magic_len ? CODING_DONE : CODING_BROKEN;
}

static void free_reader(struct coding *coding)
{
    struct reader *reader = reader_of(coding);

    ZSTD_freeDCtx(reader->state);
    free(reader);
}

struct coding *zstd_reader_new(void)
{
    static const struct coding_ops ops    = { .run = run, .free = free_reader };
    struct reader                 *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return NULL;
    reader->coding.ops = &ops;
    reader->state      = ZSTD_createDCtx();
    if (!reader->state) {
        free(reader);
        return NULL;
    }
    ZSTD_DCtx_setParameter(reader->state, ZSTD_d_windowLogMax, READ_WINDOW_BITS);
    return &reader->coding;
}

/* --- writing ----------------------------------------------------------------------------------------- */

struct writer {
    struct coding coding;
    ZSTD_CCtx    *state;
};

static struct writer *writer_of(struct coding *coding)
{
    return container_of(coding, struct writer, coding);
}

/* Until IN is used up and nothing waits that HOW would send, or there is no room left. */
static enum coding_step encode(struct writer *writer, ZSTD_EndDirective how, struct str *in,
                               char *out, size_t room, size_t *made)
{
    ZSTD_inBuffer  from = { in->at, in->len, 0 };
    ZSTD_outBuffer to   = { out, room, 0 };
    size_t         left;

    do
        left = ZSTD_compressStream2(writer->state, &to, &from, how);
    while (!ZSTD_isError(left) && to.pos < room &&
           (from.pos < from.size || (left && how != ZSTD_e_continue)));
    *in   = str_from(*in, from.pos);
    *made = to.pos;
    if (ZSTD_isError(left))
        return CODING_BROKEN;
    if (left == 0 && how == ZSTD_e_end && in->len == 0)
        return CODING_DONE;
    return to.pos == room ? CODING_FULL : CODING_MORE;
}

static enum coding_step run_writer(struct coding *coding, struct str *in, bool last, char *out,
                                   size_t room, size_t *made)
{
    return encode(writer_of(coding), last ? ZSTD_e_end : ZSTD_e_continue, in, out, room, made);
}

static enum coding_step flush_writer(struct coding *coding, char *out, size_t room, size_t *made)
{
    struct str none = STR_NONE;

    return encode(writer_of(coding), ZSTD_e_flush, &none, out, room, made);
}

static bool reset_writer(struct coding *coding)
{
    return !ZSTD_isError(ZSTD_CCtx_reset(writer_of(coding)->state, ZSTD_reset_session_only));
}

static void free_writer(struct coding *coding)
{
    struct writer *writer = writer_of(coding);

    ZSTD_freeCCtx(writer->state);
    free(writer);
}

struct coding *zstd_writer_new(void)
{
    static const struct coding_ops ops    = { run_writer, flush_writer, reset_writer, free_writer };
    struct writer                 *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return NULL;
    writer->coding.ops = &ops;
    writer->state      = ZSTD_createCCtx();
    if (!writer->state) {
        free(writer);
        return NULL;
    }
    ZSTD_CCtx_setParameter(writer->state, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(writer->state, ZSTD_c_windowLog, WRITE_WINDOW_BITS);
    return &writer->coding;
}
