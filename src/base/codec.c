#include "base/codec.h"

#include <stdint.h>

/* --- hexadecimal ------------------------------------------------------------------------------ */

static const char HEX_LOWER[] = "0123456789abcdef";
static const char HEX_UPPER[] = "0123456789ABCDEF";

void codec_hex(struct buf *out, struct str bytes)
{
    char *to = buf_reserve(out, bytes.len * 2);

    if (!to)
        return;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];

        to[2 * i]     = HEX_LOWER[byte >> 4];
        to[2 * i + 1] = HEX_LOWER[byte & 15];
    }
    out->len += bytes.len * 2;
}

int codec_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

bool codec_hex_decode(struct str text, void *to)
{
    unsigned char *out = to;

    if (text.len % 2)
        return false;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = codec_hex_digit(text.at[i]), low = codec_hex_digit(text.at[i + 1]);

        if (high < 0 || low < 0)
            return false;
        *out++ = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* --- base64 ----------------------------------------------------------------------------------- */

static const char BASE64_LETTERS[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char BASE64_URL_LETTERS[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t base64_len(size_t bytes, enum codec_base64 alphabet)
{
    return alphabet == CODEC_BASE64 ? (bytes + 2) / 3 * 4 : (bytes * 4 + 2) / 3;
}

/* One to three bytes as two to four letters. Returns the place behind them. */
static char *encode_group(char *to, const unsigned char *from, size_t len, const char *letters)
{
    uint32_t bits = (uint32_t)from[0] << 16;

    if (len > 1)
        bits |= (uint32_t)from[1] << 8;
    if (len > 2)
        bits |= from[2];
    for (size_t i = 0; i <= len; i++)
        *to++ = letters[bits >> (18 - 6 * i) & 63];
    return to;
}

void codec_base64(struct buf *out, struct str bytes, enum codec_base64 alphabet)
{
    const char *letters = alphabet == CODEC_BASE64 ? BASE64_LETTERS : BASE64_URL_LETTERS;
    size_t      len     = base64_len(bytes.len, alphabet);
    char       *to      = buf_reserve(out, len);
    char       *end     = to + len;

    if (!to || !len)
        return;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t rest = bytes.len - i;

        to = encode_group(to, (const unsigned char *)bytes.at + i, rest < 3 ? rest : 3, letters);
    }
    while (to < end)
        *to++ = '=';
    out->len += len;
}

size_t codec_base64_bytes(struct str text)
{
    return text.len / 4 * 3 + 2;
}

static int base64_value(char letter, enum codec_base64 alphabet)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    if (letter == (alphabet == CODEC_BASE64 ? '+' : '-'))
        return 62;
    if (letter == (alphabet == CODEC_BASE64 ? '/' : '_'))
        return 63;
    return -1;
}

/* Takes the padding off. False: there is some where there may be none, or the wrong number. */
static bool strip_padding(struct str *text, enum codec_base64 alphabet)
{
    size_t padding = 0;

    while (padding < 2 && padding < text->len && text->at[text->len - 1 - padding] == '=')
        padding++;
    if ((alphabet == CODEC_BASE64 || padding) && text->len % 4)
        return false;
    text->len -= padding;
    return text->len % 4 != 1;
}

bool codec_base64_decode(struct str text, enum codec_base64 alphabet, void *to, size_t *len)
{
    unsigned char *out  = to;
    uint32_t       bits = 0;
    unsigned       held = 0; /* bits that belong to no whole byte yet */

    if (!strip_padding(&text, alphabet))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.at[i], alphabet);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *out++ = (unsigned char)(bits >> held);
            bits &= (1u << held) - 1;
        }
    }
    if (bits)
        return false;
    *len = (size_t)(out - (unsigned char *)to);
    return true;
}

/* --- percent-encoding ------------------------------------------------------------------------- */

static bool is_unreserved(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* pchar and "/" of RFC 3986, 3.3. */
static bool is_path_byte(unsigned char byte)
{
    return is_unreserved(byte) || (byte && strchr("/!$&'()*+,;=:@", byte));
}

void codec_percent(struct buf *out, struct str bytes, enum codec_keep keep)
{
    char *to = buf_reserve(out, bytes.len * 3);
    char *at = to;

    if (!to)
        return;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];

        if (keep == CODEC_KEEP_PATH ? is_path_byte(byte) : is_unreserved(byte)) {
            *at++ = (char)byte;
            continue;
        }
        *at++ = '%';
        *at++ = HEX_UPPER[byte >> 4];
        *at++ = HEX_UPPER[byte & 15];
    }
    out->len += (size_t)(at - to);
}

bool codec_percent_decode(struct str text, char *to, size_t *len)
{
    char *at = to;

    for (size_t i = 0; i < text.len; i++) {
        int high, low;

        if (text.at[i] != '%') {
            *at++ = text.at[i];
            continue;
        }
        if (text.len - i < 3)
            return false;
        high = codec_hex_digit(text.at[i + 1]);
        low  = codec_hex_digit(text.at[i + 2]);
        if (high < 0 || low < 0)
            return false;
        *at++ = (char)(high << 4 | low);
        i += 2;
    }
    *len = (size_t)(at - to);
    return true;
}
