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

/* Index of the first such byte. */
static unsigned first_of(uint64_t special)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    special = __builtin_bswap64(special);
#endif
    return (unsigned)__builtin_ctzll(special) / 8;
}

/* Bytes from AT on that stand for themselves. */
static size_t count_plain(const char *at, size_t len)
{
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        uint64_t bytes, special;

        memcpy(&bytes, at + i, 8);
        special = special_of(bytes);
        if (special)
            return i + first_of(special);
    }
    while (i < len && !is_special(at[i]))
        i++;
    return i;
}

/* The same, copied to TO, which has room for LEN bytes. */
static size_t copy_plain(char *to, const char *at, size_t len)
{
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        uint64_t bytes, special;

        memcpy(&bytes, at + i, 8);
        memcpy(to + i, &bytes, 8);
        special = special_of(bytes);
        if (special)
            return i + first_of(special);
    }
    for (; i < len && !is_special(at[i]); i++)
        to[i] = at[i];
    return i;
}

/* --- writing --------------------------------------------------------------------------------- */

enum {
    ESCAPED_BYTES_MAX = 6,    /* that one byte becomes: \u001f */
    PIECE_BYTES       = 1024, /* that are escaped without a look at the buffer's bound */
};

static char *put(char *to, struct str text)
{
    memcpy(to, text.at, text.len);
    return to + text.len;
}

static char *put_escaped(char *to, char byte)
{
    static const char HEX[] = "0123456789abcdef";
    /* \b \t \n \f \r by their letters */
    static const char LETTERS[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
    };
    unsigned char code = (unsigned char)byte;

    *to++ = '\\';
    if (code >= 0x20 || LETTERS[code]) {
        *to++ = code >= 0x20 ? byte : LETTERS[code];
        return to;
    }
    to    = put(to, STR("u00"));
    *to++ = HEX[code >> 4];
    *to++ = HEX[code & 15];
    return to;
}

/* Writes the special byte or sequence at *AT, which is moved on. */
static char *put_special(char *to, const char **at, const char *end)
{
    struct str rest = str_make(*at, (size_t)(end - *at));
    size_t     len;

    if ((unsigned char)rest.at[0] < 0x80) {
        ++*at;
        return put_escaped(to, rest.at[0]);
    }
    len = text_utf8_len(rest);
    *at += len ? len : 1;
    return put(to, len ? str_make(rest.at, len) : STR("\xef\xbf\xbd"));
}

/* Writes from AT on, at least up to STOP; a sequence may reach beyond it. Returns where it ended. */
static const char *add_escaped(struct buf *out, const char *at, const char *stop, const char *end)
{
    char *start = buf_reserve(out, (size_t)(stop - at) * ESCAPED_BYTES_MAX);
    char *to    = start;

    if (!start)
        return end;
    while (at < stop) {
        size_t plain = copy_plain(to, at, (size_t)(stop - at));

        to += plain;
        at += plain;
        if (at < stop)
            to = put_special(to, &at, end);
    }
    out->len += (size_t)(to - start);
    return at;
}

void json_string(struct buf *out, struct str text)
{
    const char *at = text.at, *end = text.at + text.len;
    char       *to = buf_reserve(out, text.len + 2);
    size_t      plain;

    if (!to)
        return;
    *to   = '"';
    plain = copy_plain(to + 1, text.at, text.len);
    out->len += 1 + plain;
    for (at += plain; at < end;)
        at = add_escaped(out, at, end - at > PIECE_BYTES ? at + PIECE_BYTES : end, end);
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
