#include "base/brotli.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <stdlib.h>

#include "base/coding.h"
#include "base/compiler.h"

enum {
    QUALITY     = 4,  /* of 11; from 5 on it takes several times as long */
    WINDOW_BITS = 18, /* answers are seldom longer, and each bit doubles the memory */
};

/* --- reading ----------------------------------------------------------------------------------------- */

struct reader {
    struct coding       coding;
    BrotliDecoderState *state;
};

static enum coding_step run(struct coding *coding, struct str *in, bool last, char *out,
                            size_t room, size_t *made)
{
    struct reader *reader   = container_of(coding, struct reader, coding);
    const uint8_t *next_in  = (const uint8_t *)in->at;
    uint8_t       *next_out = (uint8_t *)out;
    size_t         left_in = in->len, left_out = room;

    BrotliDecoderResult result = BrotliDecoderDecompressStream(reader->state, &left_in, &next_in,
                                                               &left_out, &next_out, NULL);

    *in   = str_from(*in, in->len - left_in);
    *made = room - left_out;
    switch (result) {
    case BROTLI_DECODER_RESULT_SUCCESS: return CODING_DONE;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return CODING_FULL;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return last ? CODING_BROKEN : CODING_MORE;
    case BROTLI_DECODER_RESULT_ERROR: break;
    }
    return CODING_BROKEN;
}

static void free_reader(struct coding *coding)
{
    struct reader *reader = container_of(coding, struct reader, coding);

    BrotliDecoderDestroyInstance(reader->state);
    free(reader);
}

struct coding *brotli_reader_new(void)
{
    static const struct coding_ops ops    = { .run = run, .free = free_reader };
    struct reader                 *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return NULL;
    reader->coding.ops = &ops;
    reader->state      = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (!reader->state) {
        free(reader);
        return NULL;
    }
    return &reader->coding;
}

/* --- writing ----------------------------------------------------------------------------------------- */

struct writer {
    struct coding       coding;
    BrotliEncoderState *state;
};

static struct writer *writer_of(struct coding *coding)
{
    return container_of(coding, struct writer, coding);
}

/* Until IN is used up and nothing waits, or there is no room left. */
static enum coding_step encode(struct writer *writer, BrotliEncoderOperation operation,
                               struct str *in, char *out, size_t room, size_t *made)
{
    const uint8_t *next_in  = (const uint8_t *)in->at;
    uint8_t       *next_out = (uint8_t *)out;
    size_t         left_in = in->len, left_out = room;
    bool           goes_on, waits;

    do {
        goes_on = BrotliEncoderCompressStream(writer->state, operation, &left_in, &next_in,
                                              &left_out, &next_out, NULL);
        waits   = BrotliEncoderHasMoreOutput(writer->state);
    } while (goes_on && left_out && (left_in || waits));
    *in   = str_from(*in, in->len - left_in);
    *made = room - left_out;
    if (!goes_on)
        return CODING_BROKEN;
    if (BrotliEncoderIsFinished(writer->state))
        return CODING_DONE;
    return waits || !left_out ? CODING_FULL : CODING_MORE;
}

static enum coding_step run_writer(struct coding *coding, struct str *in, bool last, char *out,
                                   size_t room, size_t *made)
{
    return encode(writer_of(coding), last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS, in,
                  out, room, made);
}

static enum coding_step flush_writer(struct coding *coding, char *out, size_t room, size_t *made)
{
    struct str none = STR_NONE;

    return encode(writer_of(coding), BROTLI_OPERATION_FLUSH, &none, out, room, made);
}

static void free_writer(struct coding *coding)
{
    struct writer *writer = writer_of(coding);

    BrotliEncoderDestroyInstance(writer->state);
    free(writer);
}

struct coding *brotli_writer_new(void)
{
    static const struct coding_ops ops    = { run_writer, flush_writer, NULL, free_writer };
    struct writer                 *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return NULL;
    writer->coding.ops = &ops;
    writer->state      = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    if (!writer->state) {
        free(writer);
        return NULL;
    }
    BrotliEncoderSetParameter(writer->state, BROTLI_PARAM_QUALITY, QUALITY);
    BrotliEncoderSetParameter(writer->state, BROTLI_PARAM_LGWIN, WINDOW_BITS);
    return &writer->coding;
}
