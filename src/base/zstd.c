#include "base/zstd.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/coding.h"
#include "base/compiler.h"

enum {
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
};

static struct reader *reader_of(struct coding *coding)
{
    return container_of(coding, struct reader, coding);
}

/* The first byte of a frame, or of one to skip (RFC 8878, 3.1): distributions' libraries read formats
 * from before the RFC too, each in a way of its own. */
static bool is_frame(unsigned char first)
{
    return first == 0x28 || (first & 0xf0) == 0x50;
}

/* A frame's first byte goes in alone: of one that is all there the library would make everything in one
 * go, by other code that takes and refuses other malformed frames. */
static size_t decode_some(struct reader *reader, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
    ZSTD_inBuffer first = { in->src, in->pos + 1, in->pos };
    size_t        left  = ZSTD_decompressStream(reader->state, out, reader->in_frame ? in : &first);

    if (!reader->in_frame)
        in->pos = first.pos;
    return left;
}

/* Frames until IN or OUT is used up. False: malformed. */
static bool decode(struct reader *reader, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
    while (in->pos < in->size || reader->in_frame) {
        size_t before = in->pos, made = out->pos, rc;

        if (!reader->in_frame && !is_frame(((const unsigned char *)in->src)[before]))
            return false;
        rc = decode_some(reader, in, out);
        if (ZSTD_isError(rc))
            return false;
        reader->begun    = true;
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
    return reader->begun && !reader->in_frame ? CODING_DONE : CODING_BROKEN;
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
