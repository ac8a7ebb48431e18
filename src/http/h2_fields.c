#include "http/h2_fields.h"

#include "base/arena.h"
#include "base/clock.h"
#include "http/message.h"

enum {
    OWN_FIELDS = 4, /* :status, content-type, content-length, date */
    DIGITS_MAX = 20,
};

struct builder {
    struct arena    *arena;
    struct h2_fields fields;
};

static struct builder begin(struct arena *arena, unsigned count)
{
    return (struct builder){
        .arena  = arena,
        .fields = { .at = arena_alloc(arena, (count + OWN_FIELDS) * sizeof(nghttp2_nv)) },
    };
}

/* Both stay where they are until the frame is written, so nghttp2 need not copy them. */
static void add(struct builder *builder, struct str name, struct str value)
{
    builder->fields.at[builder->fields.count++] = (nghttp2_nv){
        .name     = (uint8_t *)name.at,
        .namelen  = name.len,
        .value    = (uint8_t *)value.at,
        .valuelen = value.len,
        .flags    = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE,
    };
}

/* --- values ---------------------------------------------------------------------------------------- */

static struct str digits_of(struct arena *arena, uint64_t number)
{
    char *end = (char *)arena_alloc(arena, DIGITS_MAX) + DIGITS_MAX, *at = end;

    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return str_make(at, (size_t)(end - at));
}

static struct str status_of(struct arena *arena, unsigned status)
{
    return status == 200 ? STR("200") : digits_of(arena, status);
}

static struct str lower(struct arena *arena, struct str name)
{
    struct str copy = arena_copy(arena, name);
    char      *at   = (char *)copy.at;

    for (size_t i = 0; i < copy.len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z')
            at[i] |= 0x20;
    return copy;
}

/* RFC 9113, 8.2.1 has no blanks at a value's ends. */
static void add_copy(struct builder *builder, struct str name, struct str value)
{
    add(builder, lower(builder->arena, name), arena_copy(builder->arena, str_trim(value)));
}

/* --- which ----------------------------------------------------------------------------------------- */

/* RFC 9113, 8.2.2; and the length is the wire's to say. */
static bool is_left_out(struct str name)
{
    switch (name.len) {
    case 7: return str_is_nocase(name, STR("upgrade"));
    case 10:
        return str_is_nocase(name, STR("connection")) || str_is_nocase(name, STR("keep-alive"));
    case 14: return str_is_nocase(name, STR("content-length"));
    case 16: return str_is_nocase(name, STR("proxy-connection"));
    case 17: return str_is_nocase(name, STR("transfer-encoding"));
    default: return false;
    }
}

/* True: a Date was among them. */
static bool add_all(struct builder *builder, const struct field *fields, unsigned count)
{
    bool has_date = false;

    for (unsigned i = 0; i < count; i++) {
        if (is_left_out(fields[i].name))
            continue;
        has_date |= str_is_nocase(fields[i].name, STR("date"));
        add_copy(builder, fields[i].name, fields[i].value);
    }
    return has_date;
}

struct h2_fields h2_fields_of_answer(struct arena *arena, const struct answer *answer,
                                     uint64_t length, struct clock_date *date)
{
    struct builder builder  = begin(arena, answer->field_count);
    bool           has_body = answer->status != 204 && answer->status != 304;

    add(&builder, STR(":status"), status_of(arena, answer->status));
    if (answer->content_type.len && has_body)
        add_copy(&builder, STR("content-type"), answer->content_type);
    if (length != ANSWER_LENGTH_UNKNOWN && has_body)
        add(&builder, STR("content-length"), digits_of(arena, length));
    if (!add_all(&builder, answer->fields, answer->field_count))
        add(&builder, STR("date"), arena_copy(arena, clock_date_now(date)));
    return builder.fields;
}

struct h2_fields h2_fields_of_interim(struct arena *arena, const struct answer *answer)
{
    struct builder builder = begin(arena, answer->field_count);

    add(&builder, STR(":status"), status_of(arena, answer->status));
    add_all(&builder, answer->fields, answer->field_count);
    return builder.fields;
}

struct h2_fields h2_fields_of_trailers(struct arena *arena, const struct field *fields,
                                       unsigned count)
{
    struct builder builder = begin(arena, count);

    add_all(&builder, fields, count);
    return builder.fields;
}
