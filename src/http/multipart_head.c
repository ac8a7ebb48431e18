#include "http/multipart_head.h"

#include "base/text.h"
#include "http/chars.h"

/* --- parameters ---------------------------------------------------------------------------------- */

static struct str skip_blanks(struct str s)
{
    size_t i = 0;

    while (i < s.len && (s.at[i] == ' ' || s.at[i] == '\t'))
        i++;
    return str_from(s, i);
}

/* S begins behind the opening quote. A backslash hides a quote or itself only: old browsers send
 * paths ("C:\dir") as they are. */
static bool cut_quoted(struct str *s, struct str *inside)
{
    for (size_t i = 0; i < s->len; i++) {
        if (s->at[i] == '"') {
            *inside = str_make(s->at, i);
            *s      = str_from(*s, i + 1);
            return true;
        }
        if (s->at[i] == '\\' && i + 1 < s->len && (s->at[i + 1] == '"' || s->at[i + 1] == '\\'))
            i++;
    }
    return false;
}

static bool cut_token(struct str *s, struct str *token)
{
    size_t len = s->len ? (size_t)(chars_skip(s->at, s->at + s->len, CHARS_TOKEN) - s->at) : 0;

    *token = str_make(s->at, len);
    *s     = str_from(*s, len);
    return len > 0;
}

/* A boundary may hold what a token may not ("a:b"), and some send it without quotes. */
static bool cut_bare(struct str *s, struct str *value)
{
    size_t len = 0;

    while (len < s->len && s->at[len] != ';' && s->at[len] != ' ' && s->at[len] != '\t' &&
           s->at[len] != '"')
        len++;
    *value = str_make(s->at, len);
    *s     = str_from(*s, len);
    return len > 0;
}

int multipart_param_next(struct str *rest, struct multipart_param *out)
{
    struct str s = skip_blanks(*rest);

    while (s.len && s.at[0] == ';')
        s = skip_blanks(str_from(s, 1));
    if (!s.len)
        return 0;
    if (!cut_token(&s, &out->name))
        return -1;
    s = skip_blanks(s);
    if (!s.len || s.at[0] != '=')
        return -1;
    s = skip_blanks(str_from(s, 1));
    if (s.len && s.at[0] == '"') {
        s = str_from(s, 1);
        if (!cut_quoted(&s, &out->value))
            return -1;
    } else if (!cut_bare(&s, &out->value)) {
        return -1;
    }
    *rest = skip_blanks(s);
    return rest->len && rest->at[0] != ';' ? -1 : 1;
}

/* --- texts --------------------------------------------------------------------------------------- */

static bool is_utf8(struct str s)
{
    while (s.len) {
        size_t len = text_utf8_len(s);

        if (!len)
            return false;
        s = str_from(s, len);
    }
    return true;
}

/* Browsers write a quote and the two line ends so, and nothing else (WHATWG HTML, 4.10.22.8). */
static bool is_browser_escape(struct str s, char *byte)
{
    if (s.len < 3 || s.at[0] != '%')
        return false;
    s     = str_make(s.at + 1, 2);
    *byte = str_is(s, STR("22"))          ? '"'
            : str_is_nocase(s, STR("0D")) ? '\r'
            : str_is_nocase(s, STR("0A")) ? '\n'
                                          : '\0';
    return *byte != '\0';
}

/* TEXTS has room: what is decoded never grows. */
static struct str unescape(struct buf *texts, struct str s)
{
    size_t from = texts->len;
    char   byte;

    while (s.len) {
        size_t len = 1;

        byte = s.at[0];
        if (byte == '\\' && s.len > 1 && (s.at[1] == '"' || s.at[1] == '\\'))
            byte = s.at[len++];
        else if (is_browser_escape(s, &byte))
            len = 3;
        else
            byte = s.at[0];
        buf_add_byte(texts, byte);
        s = str_from(s, len);
    }
    return str_make(texts->at + from, texts->len - from);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode_percent(struct buf *texts, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        int high, low;

        if (s.at[i] != '%') {
            buf_add_byte(texts, s.at[i]);
            continue;
        }
        if (s.len - i < 3 || (high = hex_digit(s.at[i + 1])) < 0 ||
            (low = hex_digit(s.at[i + 2])) < 0)
            return false;
        buf_add_byte(texts, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}

/* RFC 8187: UTF-8'language'percent-encoded. STR_NONE for what is none: the plain name is there. */
static struct str decode_extended(struct buf *texts, struct str s)
{
    size_t     charset = str_find(s, '\''), from = texts->len;
    struct str rest = str_from(s, charset), decoded;

    if (!rest.len || !str_is_nocase(str_make(s.at, charset), STR("UTF-8")))
        return STR_NONE;
    rest = str_from(rest, 1);
    rest = str_from(rest, str_find(rest, '\''));
    if (!rest.len || !decode_percent(texts, str_from(rest, 1)))
        return STR_NONE;
    decoded = str_make(texts->at + from, texts->len - from);
    return is_utf8(decoded) ? decoded : STR_NONE;
}

/* --- names of files ------------------------------------------------------------------------------ */

/* C0, DEL, C1, and what turns the direction of writing ("gpj.exe" shown as "exe.jpg"). */
static bool is_deceiving(struct str sequence)
{
    unsigned char a = (unsigned char)sequence.at[0], b, c;

    if (sequence.len == 1)
        return a < 0x20 || a == 0x7f;
    b = (unsigned char)sequence.at[1];
    if (sequence.len == 2)
        return (a == 0xc2 && b < 0xa0) || (a == 0xd8 && b == 0x9c);
    c = (unsigned char)sequence.at[2];
    return sequence.len == 3 && a == 0xe2 &&
           ((b == 0x80 && ((c >= 0x8e && c <= 0x8f) || (c >= 0xa8 && c <= 0xae))) ||
            (b == 0x81 && c >= 0xa6 && c <= 0xa9));
}

static struct str last_of_path(struct str path)
{
    size_t from = path.len;

    while (from && path.at[from - 1] != '/' && path.at[from - 1] != '\\')
        from--;
    return str_from(path, from);
}

/* Bytes of the ending that stays when a name is cut: ".jpeg" of a photo. */
static size_t ending_of(struct str name)
{
    size_t len = 0;

    while (len < name.len && len < 16 && name.at[name.len - 1 - len] != '.')
        len++;
    return len < 16 && len < name.len ? len + 1 : 0;
}

/* Whole sequences of S that fit in ROOM, without the deceiving ones. */
static size_t copy_plain(struct str s, char *to, size_t room)
{
    size_t len = 0, sequence;

    for (; s.len && (sequence = text_utf8_len(s)) != 0; s = str_from(s, sequence)) {
        if (is_deceiving(str_make(s.at, sequence)))
            continue;
        if (sequence > room - len)
            break;
        memcpy(to + len, s.at, sequence);
        len += sequence;
    }
    return len;
}

size_t multipart_safe_name(struct str file_name, char *to)
{
    struct str name = last_of_path(file_name), plain;
    char       ending[MULTIPART_FILE_NAME_MAX];
    size_t     tail = 0, len;

    if (name.len > MULTIPART_FILE_NAME_MAX) {
        size_t cut = ending_of(name);

        tail = copy_plain(str_from(name, name.len - cut), ending, sizeof(ending));
        name = str_make(name.at, name.len - cut);
    }
    len = copy_plain(name, to, MULTIPART_FILE_NAME_MAX - tail);
    memcpy(to + len, ending, tail);
    plain = str_trim(str_make(to, len + tail));
    if (!plain.len || str_is(plain, STR(".")) || str_is(plain, STR("..")))
        plain = STR("unnamed");
    memmove(to, plain.at, plain.len);
    return plain.len;
}

/* --- the head ------------------------------------------------------------------------------------ */

struct reading {
    struct multipart_part *part;
    struct buf            *texts;
    const char           **why;
    bool                   has_disposition;
};

static unsigned refuse(const struct reading *reading, unsigned status, const char *why)
{
    *reading->why = why;
    return status;
}

struct disposition {
    struct str name, file_name, file_name_extended;
};

static struct str *place_of(struct disposition *to, struct str name)
{
    return str_is_nocase(name, STR("name"))        ? &to->name
           : str_is_nocase(name, STR("filename"))  ? &to->file_name
           : str_is_nocase(name, STR("filename*")) ? &to->file_name_extended
                                                   : NULL;
}

static unsigned name_file(const struct reading *reading, const struct disposition *from)
{
    struct buf *texts = reading->texts;
    struct str  sent  = STR_NONE;
    char       *to;

    if (from->file_name_extended.at)
        sent = decode_extended(texts, from->file_name_extended);
    if (!sent.at && from->file_name.at)
        sent = unescape(texts, from->file_name);
    if (!sent.at)
        return 0;
    if (!is_utf8(sent))
        return refuse(reading, 400, "the name of a file is no UTF-8");
    to                       = texts->at + texts->len;
    reading->part->unnamed   = sent.len == 0;
    reading->part->file_name = str_make(to, multipart_safe_name(sent, to));
    texts->len += reading->part->file_name.len;
    return 0;
}

static unsigned read_disposition(struct reading *reading, struct str value)
{
    struct disposition     found = { STR_NONE, STR_NONE, STR_NONE };
    size_t                 end   = str_find(value, ';');
    struct str             rest  = str_from(value, end);
    struct multipart_param param;
    int                    rc;

    if (!str_is_nocase(str_trim(str_make(value.at, end)), STR("form-data")))
        return refuse(reading, 400, "a part is not disposed as form-data");
    while ((rc = multipart_param_next(&rest, &param)) > 0) {
        struct str *place = place_of(&found, param.name);

        if (place && place->at)
            return refuse(reading, 400, "a parameter of a Content-Disposition stands there twice");
        if (place)
            *place = param.value;
    }
    if (rc < 0)
        return refuse(reading, 400, "a Content-Disposition is malformed");
    if (!found.name.at)
        return refuse(reading, 400, "a part has no name");
    reading->part->name = unescape(reading->texts, found.name);
    if (!is_utf8(reading->part->name))
        return refuse(reading, 400, "the name of a part is no UTF-8");
    return name_file(reading, &found);
}

static void add_lower(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        buf_add_byte(to, s.at[i] >= 'A' && s.at[i] <= 'Z' ? (char)(s.at[i] | 0x20) : s.at[i]);
}

static unsigned read_type(const struct reading *reading, struct str value)
{
    struct str type  = str_trim(str_make(value.at, str_find(value, ';')));
    size_t     slash = str_find(type, '/'), from = reading->texts->len;

    if (slash == type.len || !chars_are_token(str_make(type.at, slash)) ||
        !chars_are_token(str_from(type, slash + 1)))
        return refuse(reading, 400, "the Content-Type of a part is malformed");
    if (str_is_nocase(str_make(type.at, slash), STR("multipart")))
        return refuse(reading, 400, "a part is multipart itself");
    add_lower(reading->texts, type);
    reading->part->type = str_make(reading->texts->at + from, type.len);
    return 0;
}

/* RFC 7578, 4.7: senders do not code parts, so what does is no form. */
static unsigned check_coding(const struct reading *reading, struct str value)
{
    if (str_is_nocase(value, STR("binary")) || str_is_nocase(value, STR("8bit")) ||
        str_is_nocase(value, STR("7bit")))
        return 0;
    return refuse(reading, 415, "a part has a Content-Transfer-Encoding that is not understood");
}

static unsigned read_field(struct reading *reading, const struct multipart_field *field)
{
    if (str_is(field->name, STR("content-disposition"))) {
        if (reading->has_disposition)
            return refuse(reading, 400, "a part has two Content-Dispositions");
        reading->has_disposition = true;
        return read_disposition(reading, field->value);
    }
    if (str_is(field->name, STR("content-type"))) {
        if (reading->part->type.at)
            return refuse(reading, 400, "a part has two Content-Types");
        return read_type(reading, field->value);
    }
    if (str_is(field->name, STR("content-transfer-encoding")))
        return check_coding(reading, field->value);
    return 0;
}

static void lower(char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z')
            at[i] |= 0x20;
}

/* LINE is without its end. */
static unsigned read_line(struct reading *reading, char *line, size_t len)
{
    struct str              all   = str_make(line, len);
    size_t                  colon = str_find(all, ':');
    struct multipart_field *field;

    if (colon == len || !chars_are_token(str_make(line, colon)) || !chars_are_field_value(all))
        return refuse(reading, 400, "a header of a part is malformed");
    if (reading->part->count == MULTIPART_FIELDS_MAX)
        return refuse(reading, 413, "a part has more than 32 headers");
    lower(line, colon);
    field  = &reading->part->fields[reading->part->count++];
    *field = (struct multipart_field){ str_make(line, colon), str_trim(str_from(all, colon + 1)) };
    return read_field(reading, field);
}

unsigned multipart_head_parse(struct multipart_part *part, struct buf *head, struct buf *texts,
                              const char **why)
{
    struct reading reading = { .part = part, .texts = texts, .why = why };
    struct str     rest    = buf_str(head);
    unsigned       fault   = 0;

    part->name = part->file_name = part->type = STR_NONE;
    part->unnamed                             = false;
    part->count                               = 0;
    buf_clear(texts);
    /* each text is decoded at most twice, and no memory moves while PART borrows */
    if (!buf_reserve(texts, 3 * head->len + MULTIPART_FILE_NAME_MAX))
        return refuse(&reading, 413, "there is no memory for the head of a part");
    while (rest.len && !fault) {
        size_t line = str_find(rest, '\n');

        fault = read_line(&reading, head->at + (rest.at - head->at), line - 1);
        rest  = str_from(rest, line + 1);
    }
    if (!fault && !reading.has_disposition)
        return refuse(&reading, 400, "a part has no Content-Disposition");
    return fault;
}
