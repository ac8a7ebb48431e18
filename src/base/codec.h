/* base/codec.h - bytes as text: hexadecimal, base64, percent-encoding.
 *
 * Encoders append to a buf, whose `failed` tells of a bound that was hit. Decoders write at most
 * codec_..._bytes() to memory of the caller's and refuse what no encoder would have written. */
#ifndef BASE_CODEC_H
#define BASE_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* --- hexadecimal ------------------------------------------------------------------------------ */

/* Lower case. */
void codec_hex(struct buf *out, struct str bytes);
/* TO holds text.len / 2 bytes. Either case is read. False: odd length or no digit. */
bool codec_hex_decode(struct str text, void *to);

/* --- base64 (RFC 4648, sections 4 and 5) ------------------------------------------------------ */

enum codec_base64 {
    CODEC_BASE64,     /* + and /, padded */
    CODEC_BASE64_URL, /* - and _, not padded */
};

void codec_base64(struct buf *out, struct str bytes, enum codec_base64 alphabet);
/* Bytes that TEXT cannot exceed when decoded. */
size_t codec_base64_bytes(struct str text);
/* Padding must be whole with CODEC_BASE64 and may be absent with _URL; bits behind the last byte
 * must be zero, so that each value has one text. False: malformed; *LEN is set only on success. */
bool codec_base64_decode(struct str text, enum codec_base64 alphabet, void *to, size_t *len);

/* --- percent-encoding (RFC 3986, 2.1) --------------------------------------------------------- */

enum codec_keep {
    CODEC_KEEP_UNRESERVED, /* encodeURIComponent: all but letters, digits and -._~ */
    CODEC_KEEP_PATH,       /* "/" and what else a path segment may hold stay */
};

void codec_percent(struct buf *out, struct str bytes, enum codec_keep keep);
/* TO holds text.len bytes and may be text.at itself. False: a "%" without two digits. */
bool codec_percent_decode(struct str text, char *to, size_t *len);

/* Value of a hexadecimal digit, -1 for another byte. */
int codec_hex_digit(char digit);

#endif
