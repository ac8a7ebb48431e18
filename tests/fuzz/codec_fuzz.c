/* links: srv_base
 *
 * Decoders take any bytes; what they accept, the encoder writes back, and what it wrote, they read. */
#include <stdint.h>
#include <stdlib.h>

#include "base/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

static struct buf out;

static void fresh_out(void)
{
    buf_clear(&out);
}

static void try_base64(struct str text, enum codec_base64 alphabet, char *room)
{
    size_t len;

    fresh_out();
    if (codec_base64_decode(text, alphabet, room, &len)) {
        must(len <= codec_base64_bytes(text));
        codec_base64(&out, str_make(room, len), alphabet);
        /* One text for each value, but that padding is optional in URLs. */
        must(alphabet == CODEC_BASE64 ? str_is(buf_str(&out), text)
                                      : str_starts_with(text, buf_str(&out)));
    }
    fresh_out();
    codec_base64(&out, text, alphabet);
    must(codec_base64_decode(buf_str(&out), alphabet, room, &len) &&
         str_is(str_make(room, len), text));
}

static void try_hex(struct str text, char *room)
{
    codec_hex_decode(text, room);
    fresh_out();
    codec_hex(&out, text);
    must(codec_hex_decode(buf_str(&out), room) && str_is(str_make(room, text.len), text));
}

static void try_percent(struct str text, enum codec_keep keep, char *room)
{
    size_t len;

    codec_percent_decode(text, room, &len);
    fresh_out();
    codec_percent(&out, text, keep);
    must(codec_percent_decode(buf_str(&out), out.at, &len) && str_is(str_make(out.at, len), text));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = str_make((const char *)bytes, len);
    char      *room = malloc(len + 3);

    buf_init(&out, 4 * len + 64);
    must(room && buf_reserve(&out, 1));
    try_base64(text, CODEC_BASE64, room);
    try_base64(text, CODEC_BASE64_URL, room);
    try_hex(text, room);
    try_percent(text, CODEC_KEEP_UNRESERVED, room);
    try_percent(text, CODEC_KEEP_PATH, room);
    buf_fini(&out);
    free(room);
    return 0;
}
