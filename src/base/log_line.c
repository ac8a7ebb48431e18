#include "base/log_line.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"

/* A payload is: level (one byte), the message as a piece, then for each field its type (one byte),
 * the key as a piece, the value as a piece. A piece is its length in four bytes, then its bytes. */
enum value_type {
    VALUE_TEXT = 't',
    VALUE_JSON = 'j', /* a number, or a whole document */
};

enum { PIECE_HEAD = 4, KEY_BYTES_MAX = 200, CUT_ROOM = 16, INDENT = 4 };

static const struct str CUT = STR_INIT("\xe2\x80\xa6"); /* an ellipsis */

/* --- packing ------------------------------------------------------------------------------------ */

static void add_piece(struct buf *payload, struct str bytes)
{
    uint32_t len = (uint32_t)bytes.len;

    buf_add(payload, &len, PIECE_HEAD);
    buf_add_str(payload, bytes);
}

/* The longest start of S within BYTES_MAX that ends between characters. */
static struct str cut_to(struct str s, size_t bytes_max)
{
    size_t len = s.len < bytes_max ? s.len : bytes_max;

    while (len < s.len && len > 0 && ((unsigned char)s.at[len] & 0xc0) == 0x80)
        len--;
    return str_make(s.at, len);
}

/* TEXT as a piece, cut with an ellipsis where ROOM does not hold it. */
static void add_text_piece(struct buf *payload, struct str text, size_t room)
{
    struct str kept = cut_to(text, room);
    uint32_t   len  = (uint32_t)(kept.len == text.len ? kept.len : kept.len + CUT.len);

    buf_add(payload, &len, PIECE_HEAD);
    buf_add_str(payload, kept);
    if (kept.len < text.len)
        buf_add_str(payload, CUT);
}

/* Bytes that a value may take; 0: not even its key has room. */
static size_t room_for_value(const struct log_line *line, struct str key)
{
    size_t used = line->payload.len + 1 + PIECE_HEAD + key.len + PIECE_HEAD + CUT_ROOM;

    return used < LOG_PAYLOAD_MAX ? LOG_PAYLOAD_MAX - used : 0;
}

void log_line_begin(struct log_line *line, enum log_level level, struct str message)
{
    line->level = level;
    buf_init(&line->payload, LOG_PAYLOAD_MAX);
    buf_add_byte(&line->payload, (char)level);
    add_text_piece(&line->payload, message, LOG_PAYLOAD_MAX / 2);
}

static void add_key(struct log_line *line, enum value_type type, struct str key)
{
    buf_add_byte(&line->payload, (char)type);
    add_piece(&line->payload, key);
}

void log_line_text(struct log_line *line, struct str key, struct str value)
{
    size_t room;

    key  = cut_to(key, KEY_BYTES_MAX);
    room = room_for_value(line, key);
    if (room == 0)
        return;
    add_key(line, VALUE_TEXT, key);
    add_text_piece(&line->payload, value, room);
}

void log_line_json(struct log_line *line, struct str key, struct str json)
{
    key = cut_to(key, KEY_BYTES_MAX);
    if (json.len > room_for_value(line, key)) {
        log_line_text(line, key, STR("(too large)"));
        return;
    }
    add_key(line, VALUE_JSON, key);
    add_piece(&line->payload, json);
}

/* --- packing by a format -------------------------------------------------------------------------- */

enum length { LENGTH_INT, LENGTH_LONG, LENGTH_LLONG, LENGTH_SIZE };

struct conversion {
    bool        counted; /* "%.*s" */
    enum length length;
    char        letter;
};

/* Reads "%.*s", "%llu" ... from *AT, which moves behind it. */
static struct conversion read_conversion(const char **at)
{
    struct conversion c = { .length = LENGTH_INT };

    (*at)++;
    if (strncmp(*at, ".*", 2) == 0) {
        c.counted = true;
        *at += 2;
    }
    for (; **at == 'l'; (*at)++)
        c.length = c.length == LENGTH_LONG ? LENGTH_LLONG : LENGTH_LONG;
    if (**at == 'z') {
        c.length = LENGTH_SIZE;
        (*at)++;
    }
    c.letter = *(*at)++;
    return c;
}

static long long take_signed(enum length length, struct log_args *args)
{
    switch (length) {
    case LENGTH_LONG: return va_arg(args->list, long);
    case LENGTH_LLONG: return va_arg(args->list, long long);
    case LENGTH_SIZE: return va_arg(args->list, ssize_t);
    default: return va_arg(args->list, int);
    }
}

static unsigned long long take_unsigned(enum length length, struct log_args *args)
{
    switch (length) {
    case LENGTH_LONG: return va_arg(args->list, unsigned long);
    case LENGTH_LLONG: return va_arg(args->list, unsigned long long);
    case LENGTH_SIZE: return va_arg(args->list, size_t);
    default: return va_arg(args->list, unsigned);
    }
}

static struct str take_string(const struct conversion *c, struct log_args *args)
{
    int         count = c->counted ? va_arg(args->list, int) : -1;
    const char *text  = va_arg(args->list, const char *);

    if (!text)
        return STR("(null)");
    return c->counted ? str_make(text, (size_t)count) : str_of(text);
}

/* JSON has no way to write an infinite number or none. */
static void add_double(struct log_line *line, struct str key, double value)
{
    char text[40];
    int  len = snprintf(text, sizeof(text), "%.15g", value);

    if (value - value == 0)
        log_line_json(line, key, str_make(text, (size_t)len));
    else
        log_line_text(line, key, str_make(text, (size_t)len));
}

static void add_converted(struct log_line *line, struct str key, const struct conversion *c,
                          struct log_args *args)
{
    char text[40];
    int  len = 0;

    switch (c->letter) {
    case 's': log_line_text(line, key, take_string(c, args)); return;
    case 'f':
    case 'g': add_double(line, key, va_arg(args->list, double)); return;
    case 'c':
        text[0] = (char)va_arg(args->list, int);
        log_line_text(line, key, str_make(text, 1));
        return;
    case 'x':
        len = snprintf(text, sizeof(text), "0x%llx", take_unsigned(c->length, args));
        log_line_text(line, key, str_make(text, (size_t)len));
        return;
    case 'd':
    case 'i': len = snprintf(text, sizeof(text), "%lld", take_signed(c->length, args)); break;
    case 'u': len = snprintf(text, sizeof(text), "%llu", take_unsigned(c->length, args)); break;
    default: assert(!"a conversion that base/log.h does not name");
    }
    log_line_json(line, key, str_make(text, (size_t)len));
}

void log_line_format(struct log_line *line, const char *format, struct log_args *args)
{
    while (*(format += strspn(format, " "))) {
        size_t     key_len = strcspn(format, "=");
        struct str key     = str_make(format, key_len);

        format += key_len;
        assert(*format == '=');
        format++;
        if (*format == '%') {
            struct conversion c = read_conversion(&format);

            add_converted(line, key, &c, args);
        } else {
            size_t word_len = strcspn(format, " ");

            log_line_text(line, key, str_make(format, word_len));
            format += word_len;
        }
    }
}

/* --- unpacking: on the log's thread ------------------------------------------------------------- */

static struct str take_piece(struct str *rest)
{
    uint32_t   len;
    struct str piece;

    memcpy(&len, rest->at, PIECE_HEAD);
    piece = str_make(rest->at + PIECE_HEAD, len);
    *rest = str_from(*rest, PIECE_HEAD + len);
    return piece;
}

static char take_byte(struct str *rest)
{
    char byte = rest->at[0];

    *rest = str_from(*rest, 1);
    return byte;
}

/* Fields that a line has anyway: a second one of the name would make readers disagree. */
static bool is_taken(struct str key)
{
    return str_is(key, STR("level")) || str_is(key, STR("time")) || str_is(key, STR("pid")) ||
           str_is(key, STR("hostname")) || str_is(key, STR("msg"));
}

static void add_json_key(struct buf *out, struct str key)
{
    buf_add_byte(out, ',');
    text_json(out, key);
    if (is_taken(key)) { /* "level" becomes "level_" */
        out->len--;
        buf_add_str(out, STR("_\""));
    }
    buf_add_byte(out, ':');
}

static void line_json(struct buf *out, const void *payload, size_t len)
{
    struct str rest = str_from(str_make(payload, len), 1);

    buf_add_str(out, STR(",\"msg\":"));
    text_json(out, take_piece(&rest));
    while (rest.len) {
        char type = take_byte(&rest);

        add_json_key(out, take_piece(&rest));
        if (type == VALUE_JSON)
            buf_add_str(out, take_piece(&rest));
        else
            text_json(out, take_piece(&rest));
    }
}

/* JSON for people: a line break in one of its texts (a traceback) is one here, and a tab two blanks. */
static void add_readable_json(struct buf *out, struct str json)
{
    size_t shown = 0;

    for (size_t i = 0; i + 1 < json.len; i++) {
        char escaped = json.at[i + 1];

        if (json.at[i] != '\\')
            continue;
        if (escaped == 'n' || escaped == 't') {
            text_terminal(out, str_make(json.at + shown, i - shown), INDENT);
            text_terminal(out, escaped == 'n' ? STR("\n") : STR("  "), INDENT);
            shown = i + 2;
        }
        i++; /* a backslash behind a backslash begins nothing */
    }
    text_terminal(out, str_from(json, shown), INDENT);
}

static void line_pretty(struct buf *out, const void *payload, size_t len, bool colours)
{
    struct str rest = str_make(payload, len);

    log_line_level(out, (unsigned char)take_byte(&rest), colours);
    text_terminal(out, take_piece(&rest), INDENT);
    while (rest.len) {
        char type = take_byte(&rest);

        buf_add_str(out, colours ? STR("  \x1b[2m") : STR("  "));
        text_terminal(out, take_piece(&rest), 0);
        buf_add_str(out, colours ? STR("=\x1b[0m") : STR("="));
        if (type == VALUE_JSON)
            add_readable_json(out, take_piece(&rest));
        else
            text_terminal(out, take_piece(&rest), INDENT);
    }
}

const struct log_kind LOG_LINE_KIND = { line_json, line_pretty };

/* --- what all lines have ---------------------------------------------------------------------------- */

void log_line_open_json(struct buf *out, unsigned level, int64_t wall_ms, int pid,
                        const char *hostname)
{
    buf_add_str(out, STR("{\"level\":"));
    buf_add_u64(out, level);
    buf_add_str(out, STR(",\"time\":"));
    buf_add_u64(out, (uint64_t)wall_ms);
    buf_add_str(out, STR(",\"pid\":"));
    buf_add_u64(out, (uint64_t)pid);
    if (hostname) {
        buf_add_str(out, STR(",\"hostname\":"));
        text_json(out, str_of(hostname));
    }
}

void log_line_open_pretty(struct buf *out, int64_t wall_ms, bool colours)
{
    time_t    seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    char      text[16];

    localtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%H:%M:%S", &tm);
    buf_printf(out, colours ? "\x1b[2m%s.%03d\x1b[0m " : "%s.%03d ", text, (int)(wall_ms % 1000));
}

void log_line_level(struct buf *out, unsigned level, bool colours)
{
    static const struct {
        const char *name, *colour;
    } levels[]     = { { "TRACE", "\x1b[2m" },  { "DEBUG", "\x1b[36m" }, { "INFO ", "\x1b[32m" },
                       { "WARN ", "\x1b[33m" }, { "ERROR", "\x1b[31m" }, { "FATAL", "\x1b[1;31m" } };
    unsigned index = level / 10 - 1;

    assert(index < ARRAY_LEN(levels));
    if (colours)
        buf_printf(out, "%s%s\x1b[0m ", levels[index].colour, levels[index].name);
    else
        buf_printf(out, "%s ", levels[index].name);
}
