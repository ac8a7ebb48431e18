#include "base/json.h"

#include <assert.h>

#include "base/codec.h"
#include "base/text.h"

/* --- eight bytes at once ------------------------------------------------------------------------ */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Not 0 if one of the eight bytes is a control character, a quote, a backslash or not ASCII. A
 * borrow may set a bit above such a byte, never below the first. */
static uint64_t special_of(uint64_t bytes)
{
    uint64_t control   = bytes - EACH(0x20);
    uint64_t quote     = (bytes ^ EACH('"')) - EACH(1);
    uint64_t backslash = (bytes ^ EACH('\\')) - EACH(1);

    return (control | quote | backslash | bytes) & EACH(0x80);
}

static bool is_special(char byte)
{
    return (unsigned char)byte < 0x20 || (unsigned char)byte >= 0x80 || byte == '"' || byte == '\\';
}

/* Bytes from AT on that stand for themselves. */
static size_t count_plain(const char *at, size_t len)
{
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        uint64_t bytes;

        memcpy(&bytes, at + i, 8);
        if (special_of(bytes))
            break;
    }
    while (i < len && !is_special(at[i]))
        i++;
    return i;
}

/* The same, copied to TO. */
static size_t copy_plain(char *to, const char *at, size_t len)
{
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        uint64_t bytes;

        memcpy(&bytes, at + i, 8);
        if (special_of(bytes))
            break;
        memcpy(to + i, &bytes, 8);
    }
    for (; i < len && !is_special(at[i]); i++)
        to[i] = at[i];
    return i;
}

/* --- writing --------------------------------------------------------------------------------- */

static void add_escape(struct buf *out, char byte)
{
    static const char HEX[] = "0123456789abcdef";
    /* \b \t \n \f \r by their letters */
    static const char SHORT[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    unsigned char code    = (unsigned char)byte;
    char          text[6] = { '\\', 'u', '0', '0', HEX[code >> 4 & 15], HEX[code & 15] };

    if (code >= 0x20)
        text[1] = byte;
    else if (SHORT[code])
        text[1] = SHORT[code];
    buf_add(out, text, text[1] == 'u' ? 6 : 2);
}

/* Writes the special byte or sequence at TEXT's front; returns the bytes that it took. */
static size_t add_special(struct buf *out, struct str text)
{
    size_t len;

    if ((unsigned char)text.at[0] < 0x80) {
        add_escape(out, text.at[0]);
        return 1;
    }
    len = text_utf8_len(text);
    if (len)
        buf_add(out, text.at, len);
    else
        buf_add_str(out, STR("\xef\xbf\xbd"));
    return len ? len : 1;
}

void json_string(struct buf *out, struct str text)
{
    char  *to = buf_reserve(out, text.len + 2);
    size_t at;

    if (!to)
        return;
    *to = '"';
    at  = copy_plain(to + 1, text.at, text.len);
    out->len += 1 + at;
    while (at < text.len) {
        size_t plain;

        at += add_special(out, str_from(text, at));
        plain = count_plain(text.at + at, text.len - at);
        buf_add(out, text.at + at, plain);
        at += plain;
    }
    buf_add_byte(out, '"');
}

/* --- reading --------------------------------------------------------------------------------- */

/* The four hex digits at AT as a code unit; -1: there are none. */
static long code_unit(const char *at, const char *end)
{
    long unit = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = codec_hex_digit(at[i]);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high(long unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(long unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

/* Length of the escape whose backslash is at AT; 0: *FAULT says what is wrong. */
static size_t escape_len(const char *at, const char *end, const char **fault)
{
    long unit;

    if (end - at < 2) {
        *fault = "a string without its closing quote";
        return 0;
    }
    if (at[1] != 'u') {
        if (at[1] && strchr("\"\\/bfnrt", at[1]))
            return 2;
        *fault = "an unknown escape";
        return 0;
    }
    unit = code_unit(at + 2, end);
    if (unit < 0) {
        *fault = "\\u without four hex digits";
        return 0;
    }
    if (!is_high(unit) && !is_low(unit))
        return 6;
    if (is_high(unit) && end - at > 7 && at[6] == '\\' && at[7] == 'u' &&
        is_low(code_unit(at + 8, end)))
        return 12;
    *fault = "half of a surrogate pair";
    return 0;
}

/* Length of the special byte or sequence at AT within a string; 0: *FAULT says what is wrong. */
static size_t special_len(const char *at, const char *end, const char **fault)
{
    size_t len;

    if (*at == '\\')
        return escape_len(at, end, fault);
    if ((unsigned char)*at < 0x20) {
        *fault = "a control character in a string";
        return 0;
    }
    len = text_utf8_len(str_make(at, (size_t)(end - at)));
    if (len == 0)
        *fault = "bytes that are no UTF-8";
    return len;
}

void json_span(struct json_span *span, const char *at, const char *end)
{
    const char *start = at;

    span->escaped = false;
    span->fault   = NULL;
    for (;;) {
        size_t len;

        at += count_plain(at, (size_t)(end - at));
        if (at == end)
            span->fault = "a string without its closing quote";
        if (at == end || *at == '"')
            break;
        span->escaped |= *at == '\\';
        len = special_len(at, end, &span->fault);
        if (len == 0)
            break;
        at += len;
    }
    span->text = str_make(start, (size_t)(at - start));
}

static char *put_utf8(char *to, unsigned long code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static char short_escape(char letter)
{
    switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return letter; /* quote, backslash, slash */
    }
}

/* *AT is at a backslash; both are moved on. */
static char *put_escape(char *to, const char **at, const char *end)
{
    const char *from = *at;
    long        unit;

    if (from[1] != 'u') {
        *at += 2;
        *to = short_escape(from[1]);
        return to + 1;
    }
    unit = code_unit(from + 2, end);
    if (!is_high(unit)) {
        *at += 6;
        return put_utf8(to, (unsigned long)unit);
    }
    *at += 12;
    return put_utf8(to, 0x10000 + ((unsigned long)(unit - 0xd800) << 10) +
                            (unsigned long)(code_unit(from + 8, end) - 0xdc00));
}

size_t json_unescape(char *to, struct str text)
{
    const char *at = text.at, *end = text.at + text.len;
    char       *start = to;

    while (at < end) {
        const char *stop = memchr(at, '\\', (size_t)(end - at));
        size_t      len  = (size_t)((stop ? stop : end) - at);

        memcpy(to, at, len);
        to += len;
        at += len;
        if (stop)
            to = put_escape(to, &at, end);
    }
    assert((size_t)(to - start) <= text.len);
    return (size_t)(to - start);
}
