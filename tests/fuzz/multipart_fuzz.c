/* links: srv_http
 *
 * The first byte tells how the rest is cut: however a body comes, the same parts with the same content
 * come out of it, or the same fault; the names of files are safe; and the content of the parts is what
 * stands between the delimiters for who just looks for them. The first line of the rest is the
 * Content-Type's boundary. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct outcome {
    struct buf told;    /* parts and content, one behind the other */
    struct buf content; /* alone, each part's behind a zero byte */
    unsigned   fault;
};

static void must(bool claim)
{
    if (!claim)
        abort();
}

static void check_file_name(struct str name)
{
    must(name.len > 0 && name.len <= MULTIPART_FILE_NAME_MAX);
    must(!str_is(name, STR(".")) && !str_is(name, STR("..")));
    while (name.len) {
        size_t len = text_utf8_len(name);

        must(len > 0);
        must(name.at[0] != '/' && name.at[0] != '\\' && name.at[0] != 0x7f);
        must((unsigned char)name.at[0] >= 0x20);
        name = str_from(name, len);
    }
}

static void tell_part(struct outcome *to, const struct multipart_part *part)
{
    buf_add_str(&to->told, STR("\n["));
    buf_add_str(&to->told, part->name);
    buf_add_byte(&to->told, '|');
    if (part->file_name.at) {
        check_file_name(part->file_name);
        buf_add_str(&to->told, part->file_name);
    }
    for (unsigned i = 0; i < part->count; i++) {
        buf_add_byte(&to->told, '|');
        buf_add_str(&to->told, part->fields[i].name);
        buf_add_str(&to->told, part->fields[i].value);
    }
    buf_add_byte(&to->told, ']');
}

static bool feed(struct multipart *m, struct outcome *to, struct str piece)
{
    struct str          data;
    enum multipart_step step;

    do {
        size_t before = piece.len;

        step = multipart_next(m, &piece, &data);
        must(piece.len <= before);
        must((step == MULTIPART_DATA) == (data.len > 0));
        if (step == MULTIPART_PART) {
            tell_part(to, &m->part);
            buf_add_byte(&to->content, '\0');
        }
        if (step == MULTIPART_DATA) {
            buf_add_str(&to->told, data);
            buf_add_str(&to->content, data);
        }
        if (step == MULTIPART_END)
            buf_add_byte(&to->told, '.');
    } while (step != MULTIPART_MORE && step != MULTIPART_BROKEN);
    must(step == MULTIPART_BROKEN || !piece.len);
    return step == MULTIPART_MORE;
}

static void read_cut(struct outcome *to, struct str type, struct str body, size_t cut)
{
    struct multipart m;
    bool             ok = multipart_init(&m, type);

    while (ok && body.len) {
        size_t now = cut < body.len ? cut : body.len;

        ok   = feed(&m, to, str_make(body.at, now));
        body = str_from(body, now);
    }
    if (ok)
        multipart_finish(&m);
    to->fault = m.fault;
    must(!m.fault || (m.why && (m.fault == 400 || m.fault == 413 || m.fault == 415)));
    multipart_fini(&m);
}

/* Where WHAT stands in TEXT from AT on; the text's length if nowhere. */
static size_t find(struct str text, struct str what, size_t at)
{
    for (; at + what.len <= text.len; at++)
        if (str_is(str_make(text.at + at, what.len), what))
            return at;
    return text.len;
}

/* The content of all parts of a body that is known to be sound. */
static void read_naively(struct buf *content, struct str body, struct str boundary)
{
    struct buf text, delimiter;
    struct str all;
    size_t     at;

    buf_init(&text, SIZE_MAX);
    buf_init(&delimiter, SIZE_MAX);
    buf_add_str(&text, STR("\r\n"));
    buf_add_str(&text, body);
    buf_add_str(&delimiter, STR("\r\n--"));
    buf_add_str(&delimiter, boundary);
    all = buf_str(&text);
    at  = find(all, buf_str(&delimiter), 0);
    for (;;) {
        size_t line = at + delimiter.len, head, end;

        if (line >= all.len || all.at[line] == '-')
            break;
        head =
            find(all, STR("\r\n\r\n"), line) + 4; /* the line's own end may be the head's first */
        end = find(all, buf_str(&delimiter), head - 2);
        buf_add_byte(content, '\0');
        if (end > head)
            buf_add(content, all.at + head, end - head);
        at = end;
    }
    buf_fini(&text);
    buf_fini(&delimiter);
}

/* One that needs no quotes is what its line says. */
static bool is_plain(struct str boundary)
{
    for (size_t i = 0; i < boundary.len; i++)
        if (!isalnum((unsigned char)boundary.at[i]))
            return false;
    return boundary.len > 0;
}

static void check_content(const struct outcome *whole, struct str body, struct str boundary)
{
    struct buf content;

    if (whole->fault || !is_plain(boundary))
        return;
    buf_init(&content, SIZE_MAX);
    read_naively(&content, body, boundary);
    must(str_is(buf_str(&content), buf_str(&whole->content)));
    buf_fini(&content);
}

static void outcome_init(struct outcome *outcome)
{
    outcome->fault = 0;
    buf_init(&outcome->told, SIZE_MAX);
    buf_init(&outcome->content, SIZE_MAX);
}

static void outcome_fini(struct outcome *outcome)
{
    buf_fini(&outcome->told);
    buf_fini(&outcome->content);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct outcome whole, cut;
    struct buf     type;
    struct str     body, boundary;

    if (!len)
        return 0;
    body     = str_make((const char *)bytes + 1, len - 1);
    boundary = str_make(body.at, str_find(body, '\n'));
    body     = str_from(body, boundary.len + (boundary.len < body.len));
    buf_init(&type, SIZE_MAX);
    outcome_init(&whole);
    outcome_init(&cut);
    buf_add_str(&type, STR("multipart/form-data; boundary="));
    buf_add_str(&type, boundary);
    read_cut(&whole, buf_str(&type), body, body.len + 1);
    read_cut(&cut, buf_str(&type), body, 1 + bytes[0] % 32);
    must(whole.fault == cut.fault && str_is(buf_str(&whole.told), buf_str(&cut.told)));
    check_content(&whole, body, boundary);
    outcome_fini(&whole);
    outcome_fini(&cut);
    buf_fini(&type);
    return 0;
}
