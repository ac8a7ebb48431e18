/* links: srv_http
 *
 * The first byte tells how the rest is cut: however a body comes, the same parts with the same content
 * come out of it, or the same fault; and the names of files are safe. The first line of the rest is the
 * Content-Type's boundary. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct outcome {
    struct buf told; /* parts and content, one behind the other */
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
        if (step == MULTIPART_PART)
            tell_part(to, &m->part);
        if (step == MULTIPART_DATA)
            buf_add_str(&to->told, data);
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct outcome whole = { .fault = 0 }, cut = { .fault = 0 };
    struct buf     type;
    struct str     all;
    size_t         line;

    if (!len)
        return 0;
    all  = str_make((const char *)bytes + 1, len - 1);
    line = str_find(all, '\n');
    buf_init(&type, SIZE_MAX);
    buf_init(&whole.told, SIZE_MAX);
    buf_init(&cut.told, SIZE_MAX);
    buf_add_str(&type, STR("multipart/form-data; boundary="));
    buf_add(&type, all.at, line);
    all = str_from(all, line < all.len ? line + 1 : line);
    read_cut(&whole, buf_str(&type), all, all.len + 1);
    read_cut(&cut, buf_str(&type), all, 1 + bytes[0] % 32);
    must(whole.fault == cut.fault && str_is(buf_str(&whole.told), buf_str(&cut.told)));
    buf_fini(&type);
    buf_fini(&whole.told);
    buf_fini(&cut.told);
    return 0;
}
