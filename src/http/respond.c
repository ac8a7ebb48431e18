#include "http/respond.h"

#include "base/buf.h"
#include "base/clock.h"
#include "http/chars.h"
#include "http/message.h"

/* --- what may be written ------------------------------------------------------------------------- */

static bool are_sound(const struct field *fields, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (fields[i].id != FIELD_CHECKED &&
            (!chars_are_token(fields[i].name) || !chars_are_field_value(fields[i].value)))
            return false;
    return true;
}

bool respond_is_sound(const struct answer *answer)
{
    return answer->status >= 200 && answer->status <= 599 &&
           chars_are_field_value(answer->content_type) &&
           are_sound(answer->fields, answer->field_count);
}

bool respond_is_sound_interim(const struct answer *answer)
{
    return answer->status >= 100 && answer->status <= 199 && answer->status != 101 &&
           are_sound(answer->fields, answer->field_count);
}

bool respond_is_sound_upgrade(struct str protocol, const struct answer *answer)
{
    return chars_are_token(protocol) && are_sound(answer->fields, answer->field_count);
}

bool respond_are_sound_trailers(const struct field *fields, unsigned count)
{
    return are_sound(fields, count);
}

/* --- pieces --------------------------------------------------------------------------------------- */

enum {
    STATUS_LINE_BYTES = 64, /* the longest ready-made one has 51 */
    FIXED_BYTES       = STATUS_LINE_BYTES + sizeof("Date: \r\n") + CLOCK_HTTP_DATE_LEN +
                  sizeof("Content-Type: \r\n") + sizeof("Transfer-Encoding: chunked\r\n") + 20 +
                  sizeof("Connection: keep-alive\r\n") + sizeof("\r\n"),
};

static char *put(char *to, struct str s)
{
    memcpy(to, s.at, s.len);
    return to + s.len;
}

static char *put_u64(char *to, uint64_t value)
{
    char  digits[20];
    char *at = digits + sizeof(digits);

    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return put(to, str_make(at, (size_t)(digits + sizeof(digits) - at)));
}

static char *put_status_line(char *to, unsigned status)
{
    struct str line = status_line(status);

    if (line.len)
        return put(to, line);
    to = put(to, STR("HTTP/1.1 "));
    to = put_u64(to, status);
    return put(to, STR(" Unknown\r\n"));
}

static char *put_field(char *to, struct str name, struct str value)
{
    to = put(to, name);
    to = put(to, STR(": "));
    to = put(to, value);
    return put(to, STR("\r\n"));
}

static size_t bytes_of(const struct field *fields, unsigned count)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < count; i++)
        bytes += fields[i].name.len + fields[i].value.len + sizeof(": \r\n") - 1;
    return bytes;
}

/* Framing and persistence are not the application's to say. */
static bool is_the_wires_own(struct str name)
{
    switch (name.len) {
    case 10:
        return str_is_nocase(name, STR("connection")) || str_is_nocase(name, STR("keep-alive"));
    case 14: return str_is_nocase(name, STR("content-length"));
    case 17: return str_is_nocase(name, STR("transfer-encoding"));
    default: return false;
    }
}

static char *put_framing(char *to, enum respond_framing framing, uint64_t length)
{
    switch (framing) {
    case RESPOND_LENGTH:
        to = put(to, STR("Content-Length: "));
        to = put_u64(to, length);
        return put(to, STR("\r\n"));
    case RESPOND_CHUNKED: return put(to, STR("Transfer-Encoding: chunked\r\n"));
    case RESPOND_UNTIL_CLOSE:
    case RESPOND_NO_BODY: break;
    }
    return to;
}

static char *put_persistence(char *to, enum respond_persistence persistence)
{
    switch (persistence) {
    case RESPOND_SAYS_CLOSE: return put(to, STR("Connection: close\r\n"));
    case RESPOND_SAYS_KEEP_ALIVE: return put(to, STR("Connection: keep-alive\r\n"));
    case RESPOND_SAYS_NOTHING: break;
    }
    return to;
}

/* --- heads ------------------------------------------------------------------------------------------ */

/* Returns whether a Date was among the fields. */
static bool put_fields(char **to, const struct answer *answer)
{
    bool has_date = false;

    for (unsigned i = 0; i < answer->field_count; i++) {
        const struct field *field = &answer->fields[i];

        if (is_the_wires_own(field->name))
            continue;
        has_date |= str_is_nocase(field->name, STR("date"));
        *to = put_field(*to, field->name, field->value);
    }
    return has_date;
}

void respond_head(struct buf *out, const struct answer *answer, enum respond_framing framing,
                  uint64_t length, enum respond_persistence persistence, struct clock_date *date)
{
    size_t room =
        FIXED_BYTES + answer->content_type.len + bytes_of(answer->fields, answer->field_count);
    char *at = buf_reserve(out, room), *to = at;

    if (!at)
        return;
    to = put_status_line(to, answer->status);
    if (answer->content_type.len && answer->status != 204 && answer->status != 304)
        to = put_field(to, STR("Content-Type"), answer->content_type);
    to = put_framing(to, framing, length);
    if (!put_fields(&to, answer))
        to = put_field(to, STR("Date"), clock_date_now(date));
    to = put_persistence(to, persistence);
    to = put(to, STR("\r\n"));
    out->len += (size_t)(to - at);
}

void respond_upgrade(struct buf *out, struct str protocol, const struct answer *answer)
{
    size_t room = FIXED_BYTES + protocol.len + bytes_of(answer->fields, answer->field_count);
    char  *at = buf_reserve(out, room), *to = at;

    if (!at)
        return;
    to = put_status_line(to, 101);
    to = put_field(to, STR("Upgrade"), protocol);
    to = put_field(to, STR("Connection"), STR("Upgrade"));
    put_fields(&to, answer);
    to = put(to, STR("\r\n"));
    out->len += (size_t)(to - at);
}

void respond_interim(struct buf *out, const struct answer *answer)
{
    size_t room = STATUS_LINE_BYTES + bytes_of(answer->fields, answer->field_count) + 2;
    char  *at = buf_reserve(out, room), *to = at;

    if (!at)
        return;
    to = put_status_line(to, answer->status);
    for (unsigned i = 0; i < answer->field_count; i++)
        to = put_field(to, answer->fields[i].name, answer->fields[i].value);
    to = put(to, STR("\r\n"));
    out->len += (size_t)(to - at);
}

/* --- chunks -------------------------------------------------------------------------------------------- */

void respond_chunk_line(struct buf *out, uint64_t size)
{
    static const char hex[] = "0123456789abcdef";
    char              line[18];
    char             *at = line + sizeof(line);

    *--at = '\n';
    *--at = '\r';
    do {
        *--at = hex[size & 15];
        size >>= 4;
    } while (size);
    buf_add(out, at, (size_t)(line + sizeof(line) - at));
}

void respond_last_chunk(struct buf *out, const struct field *trailers, unsigned count)
{
    size_t room = sizeof("0\r\n\r\n") - 1 + bytes_of(trailers, count);
    char  *at = buf_reserve(out, room), *to = at;

    if (!at)
        return;
    to = put(to, STR("0\r\n"));
    for (unsigned i = 0; i < count; i++)
        to = put_field(to, trailers[i].name, trailers[i].value);
    to = put(to, STR("\r\n"));
    out->len += (size_t)(to - at);
}

/* --- problems ------------------------------------------------------------------------------------------- */

void respond_problem_body(struct buf *out, unsigned status, const char *reason)
{
    struct str title = status_reason(status);

    buf_printf(out, "{\"title\":\"%.*s\",\"status\":%u,\"detail\":\"", STR_ARG(title), status);
    for (; *reason; reason++) { /* the one character of our phrases that JSON escapes */
        if (*reason == '"')
            buf_add_byte(out, '\\');
        buf_add_byte(out, *reason);
    }
    buf_add_str(out, STR("\"}"));
}

void respond_problem(struct buf *out, unsigned status, const char *reason, bool head_only,
                     struct clock_date *date)
{
    struct answer answer = { .status = status, .content_type = RESPOND_PROBLEM_TYPE };
    struct buf    body;

    buf_init(&body, RESPOND_PROBLEM_BYTES_MAX);
    respond_problem_body(&body, status, reason);
    respond_head(out, &answer, RESPOND_LENGTH, body.len, RESPOND_SAYS_CLOSE, date);
    if (!head_only)
        buf_add_str(out, buf_str(&body));
    buf_fini(&body);
}
