#include "base/deflate.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/coding.h"
#include "base/compiler.h"

enum {
    WINDOW_ANY   = 15 + 32, /* zlib finds out whether it is gzip or zlib */
    WINDOW_RAW   = -15,
    WINDOW_GZIP  = 15 + 16,
    MEMORY_LEVEL = 8, /* zlib's default */
};

/* --- reading ----------------------------------------------------------------------------------------- */

struct reader {
    struct coding coding;
    z_stream      z;
    bool          begun;   /* the format is known */
    bool          is_gzip; /* another member may follow */
    bool          at_end;  /* of a member */
    unsigned char first;   /* of two bytes that tell the format */
    bool          has_first;
};

/* RFC 1950, 2.2: the method is 8, and both bytes together are a multiple of 31. */
static bool is_zlib(unsigned first, unsigned second)
{
    return (first & 0x0f) == 8 && (first << 8 | second) % 31 == 0;
}

static bool is_gzip(unsigned first, unsigned second)
{
    return first == 0x1f && second == 0x8b;
}

/* One byte is kept back until the second has come. False: not yet. */
static bool begin(struct reader *reader, struct str *in)
{
    unsigned second;

    if (!reader->has_first && in->len) {
        reader->first     = (unsigned char)in->at[0];
        reader->has_first = true;
        *in               = str_from(*in, 1);
    }
    if (!in->len)
        return false;
    second          = (unsigned char)in->at[0];
    reader->is_gzip = is_gzip(reader->first, second);
    if (!reader->is_gzip && !is_zlib(reader->first, second))
        inflateReset2(&reader->z, WINDOW_RAW);
    reader->begun = true;
    return true;
}

static int inflate_some(struct reader *reader, struct str *in)
{
    z_stream *z      = &reader->z;
    uInt      before = in->len < UINT_MAX ? (uInt)in->len : UINT_MAX;
    int       rc;

    z->next_in  = (Bytef *)in->at;
    z->avail_in = before;
    rc          = inflate(z, Z_NO_FLUSH);
    *in         = str_from(*in, before - z->avail_in);
    return rc;
}

/* The byte that begin() kept back goes first. */
static int inflate_first(struct reader *reader)
{
    struct str first = str_make((const char *)&reader->first, 1);

    reader->has_first = false;
    return inflate_some(reader, &first);
}

/* Behind a member stands another one or nothing; zeros that fill a block are passed over by gzip
 * too. */
static bool goes_on(struct reader *reader, struct str *in)
{
    while (in->len && in->at[0] == '\0')
        *in = str_from(*in, 1);
    if (!in->len)
        return false;
    inflateReset2(&reader->z, WINDOW_ANY);
    reader->at_end = false;
    return true;
}

static enum coding_step step_of(const struct reader *reader, int rc, struct str in, bool last)
{
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        return CODING_BROKEN;
    if (reader->z.avail_out == 0)
        return CODING_FULL;
    return last && !in.len ? CODING_BROKEN : CODING_MORE;
}

static enum coding_step run_member(struct reader *reader, struct str *in, bool last)
{
    int rc = Z_OK;

    if (!reader->begun && !begin(reader, in))
        return last ? CODING_BROKEN : CODING_MORE;
    if (reader->has_first)
        rc = inflate_first(reader);
    if (rc == Z_OK)
        rc = inflate_some(reader, in);
    if (rc != Z_STREAM_END)
        return step_of(reader, rc, *in, last);
    reader->at_end = true;
    return CODING_DONE;
}

/* Members until IN or OUT is used up, or the last one has ended. */
static enum coding_step run_members(struct reader *reader, struct str *in, bool last)
{
    for (;;) {
        if (!reader->at_end) {
            enum coding_step step = run_member(reader, in, last);

            if (step != CODING_DONE)
                return step;
        }
        if (!reader->is_gzip)
            return CODING_DONE;
        if (!goes_on(reader, in))
            return last ? CODING_DONE : CODING_MORE;
    }
}

static enum coding_step run(struct coding *coding, struct str *in, bool last, char *out,
                            size_t room, size_t *made)
{
    struct reader   *reader = container_of(coding, struct reader, coding);
    uInt             whole  = room < UINT_MAX ? (uInt)room : UINT_MAX;
    enum coding_step step;

    reader->z.next_out  = (Bytef *)out;
    reader->z.avail_out = whole;
    step                = run_members(reader, in, last);
    *made               = whole - reader->z.avail_out;
    return step;
}

static void free_reader(struct coding *coding)
{
    struct reader *reader = container_of(coding, struct reader, coding);

    inflateEnd(&reader->z);
    free(reader);
}

static struct coding *reader_new(const struct coding_ops *ops, int window)
{
    struct reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return NULL;
    reader->coding.ops = ops;
    if (inflateInit2(&reader->z, window) != Z_OK) {
        free(reader);
        return NULL;
    }
    return &reader->coding;
}

struct coding *deflate_reader_new(void)
{
    static const struct coding_ops ops = { .run = run, .free = free_reader };

    return reader_new(&ops, WINDOW_ANY);
}

static bool reset_raw_reader(struct coding *coding)
{
    struct reader *reader = container_of(coding, struct reader, coding);

    reader->at_end = false;
    return inflateReset(&reader->z) == Z_OK;
}

struct coding *deflate_raw_reader_new(void)
{
    static const struct coding_ops ops    = { .run   = run,
                                              .reset = reset_raw_reader,
                                              .free  = free_reader };
    struct coding                 *coding = reader_new(&ops, WINDOW_RAW);

    if (coding)
        container_of(coding, struct reader, coding)->begun = true;
    return coding;
}

/* --- writing ----------------------------------------------------------------------------------------- */

struct writer {
    struct coding coding;
    z_stream      z;
};

static struct writer *writer_of(struct coding *coding)
{
    return container_of(coding, struct writer, coding);
}

static void set_room(z_stream *z, char *out, size_t room)
{
    z->next_out  = (Bytef *)out;
    z->avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
}

/* At most what zlib can count in one call. */
static int deflate_some(z_stream *z, struct str *in, bool last)
{
    uInt given = in->len < UINT_MAX ? (uInt)in->len : UINT_MAX;
    int  rc;

    z->next_in  = (Bytef *)in->at;
    z->avail_in = given;
    rc          = deflate(z, last && given == in->len ? Z_FINISH : Z_NO_FLUSH);
    *in         = str_from(*in, given - z->avail_in);
    return rc;
}

static enum coding_step run_writer(struct coding *coding, struct str *in, bool last, char *out,
                                   size_t room, size_t *made)
{
    z_stream *z = &writer_of(coding)->z;
    int       rc;

    set_room(z, out, room);
    do
        rc = deflate_some(z, in, last);
    while (rc == Z_OK && in->len && z->avail_out);
    *made = (size_t)((char *)z->next_out - out);
    if (rc == Z_STREAM_END)
        return CODING_DONE;
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        return CODING_BROKEN;
    return z->avail_out ? CODING_MORE : CODING_FULL;
}

static enum coding_step flush_writer(struct coding *coding, char *out, size_t room, size_t *made)
{
    z_stream *z = &writer_of(coding)->z;
    int       rc;

    z->avail_in = 0;
    set_room(z, out, room);
    rc    = deflate(z, Z_SYNC_FLUSH);
    *made = (size_t)((char *)z->next_out - out);
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        return CODING_BROKEN;
    return z->avail_out ? CODING_MORE : CODING_FULL;
}

static bool reset_writer(struct coding *coding)
{
    return deflateReset(&writer_of(coding)->z) == Z_OK;
}

static void free_writer(struct coding *coding)
{
    struct writer *writer = writer_of(coding);

    deflateEnd(&writer->z);
    free(writer);
}

static struct coding *writer_new(int window)
{
    static const struct coding_ops ops    = { run_writer, flush_writer, reset_writer, free_writer };
    struct writer                 *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return NULL;
    writer->coding.ops = &ops;
    if (deflateInit2(&writer->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(writer);
        return NULL;
    }
    return &writer->coding;
}

struct coding *gzip_writer_new(void)
{
    return writer_new(WINDOW_GZIP);
}

struct coding *deflate_raw_writer_new(void)
{
    return writer_new(WINDOW_RAW);
}
