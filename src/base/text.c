#include "base/text.h"

#include <stdbool.h>

static unsigned char byte_at(struct str s, size_t i)
{
    return (unsigned char)s.at[i];
}

/* The second byte's range tells overlong forms, surrogates and what lies beyond the end. */
static bool second_byte_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0: return second >= 0xa0 && second <= 0xbf;
    case 0xed: return second >= 0x80 && second <= 0x9f;
    case 0xf0: return second >= 0x90 && second <= 0xbf;
    case 0xf4: return second >= 0x80 && second <= 0x8f;
    default: return second >= 0x80 && second <= 0xbf;
    }
}

static size_t announced_len(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

size_t text_utf8_len(struct str s)
{
    size_t len = s.len ? announced_len(byte_at(s, 0)) : 0;

    if (len > s.len)
        return 0;
    if (len > 1 && !second_byte_fits(byte_at(s, 0), byte_at(s, 1)))
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((byte_at(s, i) & 0xc0) != 0x80)
            return 0;
    return len;
}

static unsigned code_point(struct str sequence)
{
    unsigned code = byte_at(sequence, 0) & (0xffu >> (sequence.len + 1));

    for (size_t i = 1; i < sequence.len; i++)
        code = code << 6 | (byte_at(sequence, i) & 0x3f);
    return code;
}

/* C1 controls drive terminals as escape sequences do; the others turn the line's direction, so
 * that it reads otherwise than it is. */
static bool is_deceptive(unsigned code)
{
    return (code >= 0x80 && code <= 0x9f) || code == 0x200e || code == 0x200f || code == 0x2028 ||
           code == 0x2029 || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* One character outside ASCII. The escape is the same in JSON and for a person. */
static void add_character(struct buf *out, struct str sequence)
{
    unsigned code = code_point(sequence);

    if (is_deceptive(code))
        buf_printf(out, "\\u%04x", code);
    else
        buf_add_str(out, sequence);
}

/* Length of the run at the start of S that may stand in JSON as it is. */
static size_t plain_json_len(struct str s)
{
    size_t i = 0;

    while (i < s.len && byte_at(s, i) >= 0x20 && byte_at(s, i) < 0x7f && s.at[i] != '"' &&
           s.at[i] != '\\')
        i++;
    return i;
}

static void add_json_escape(struct buf *out, unsigned char byte)
{
    switch (byte) {
    case '"': buf_add_str(out, STR("\\\"")); break;
    case '\\': buf_add_str(out, STR("\\\\")); break;
    case '\n': buf_add_str(out, STR("\\n")); break;
    case '\r': buf_add_str(out, STR("\\r")); break;
    case '\t': buf_add_str(out, STR("\\t")); break;
    default: buf_printf(out, "\\u%04x", byte);
    }
}

void text_json(struct buf *out, struct str s)
{
    buf_add_byte(out, '"');
    while (s.len) {
        size_t run = plain_json_len(s), sequence;

        buf_add(out, s.at, run);
        s = str_from(s, run);
        if (!s.len)
            break;
        sequence = text_utf8_len(s);
        if (sequence == 0)
            buf_add_str(out, STR("\xef\xbf\xbd"));
        else if (sequence == 1)
            add_json_escape(out, byte_at(s, 0));
        else
            add_character(out, str_make(s.at, sequence));
        s = str_from(s, sequence ? sequence : 1);
    }
    buf_add_byte(out, '"');
}

static void add_line_end(struct buf *out, unsigned indent)
{
    if (!indent) {
        buf_add_str(out, STR("\\n"));
        return;
    }
    buf_printf(out, "\n%*s", (int)indent, "");
}

static void add_terminal_byte(struct buf *out, unsigned char byte, unsigned indent)
{
    if (byte == '\n')
        add_line_end(out, indent);
    else if (byte == '\t')
        buf_add_str(out, indent ? STR("    ") : STR("\\t"));
    else if (byte < 0x20 || byte >= 0x7f)
        buf_printf(out, "\\x%02x", byte);
    else
        buf_add_byte(out, (char)byte);
}

void text_terminal(struct buf *out, struct str s, unsigned indent)
{
    while (s.len) {
        size_t sequence = text_utf8_len(s);

        if (sequence < 2)
            add_terminal_byte(out, byte_at(s, 0), indent);
        else
            add_character(out, str_make(s.at, sequence));
        s = str_from(s, sequence ? sequence : 1);
    }
}
