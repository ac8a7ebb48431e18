#include "base/brotli.h"

#include <brotli/decode.h>
#include <stdlib.h>

#include "base/coding.h"
#include "base/compiler.h"

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
    static const struct coding_ops ops    = { run, free_reader };
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
