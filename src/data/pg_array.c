#include "data/pg_array.h"

#include <stdlib.h>

#include "base/json.h"

enum { ELEMENT_BYTES_MAX = 64 * 1024 * 1024 };

void pg_array_init(struct pg_array *array, struct str text, char separator)
{
    *array = (struct pg_array){ .rest = text, .separator = separator };
    buf_init(&array->scratch, ELEMENT_BYTES_MAX);
    if (text.len && text.at[0] == '[')
        array->rest = str_from(text, str_find(text, '{'));
}

void pg_array_fini(struct pg_array *array)
{
    buf_fini(&array->scratch);
}

static char front(const struct pg_array *array)
{
    return array->rest.len ? array->rest.at[0] : '\0';
}

static void skip(struct pg_array *array, size_t bytes)
{
    array->rest = str_from(array->rest, bytes);
}

static enum pg_array_event bad(struct pg_array *array)
{
    array->rest  = STR_NONE;
    array->depth = 0;
    array->begun = true;
    return PG_ARRAY_BAD;
}

static enum pg_array_event open_array(struct pg_array *array)
{
    if (array->depth == PG_ARRAY_DEPTH_MAX || array->after)
        return bad(array);
    skip(array, 1);
    array->begun = true;
    array->depth++;
    return PG_ARRAY_OPEN;
}

static enum pg_array_event close_array(struct pg_array *array)
{
    skip(array, 1);
    array->depth--;
    array->after = true;
    return PG_ARRAY_CLOSE;
}

/* Behind the opening quote, as the server writes it: backslash takes the next byte as it is. */
static enum pg_array_event quoted(struct pg_array *array)
{
    struct str rest = str_from(array->rest, 1);

    buf_clear(&array->scratch);
    for (size_t i = 0; i < rest.len; i++) {
        char byte = rest.at[i];

        if (byte == '"') {
            array->rest    = str_from(rest, i + 1);
            array->element = buf_str(&array->scratch);
            array->after   = true;
            return array->scratch.failed ? bad(array) : PG_ARRAY_ELEMENT;
        }
        if (byte == '\\' && ++i < rest.len)
            byte = rest.at[i];
        buf_add_byte(&array->scratch, byte);
    }
    return bad(array);
}

static enum pg_array_event plain(struct pg_array *array)
{
    struct str rest = array->rest;
    size_t     len  = 0;

    while (len < rest.len && rest.at[len] != array->separator && rest.at[len] != '}' &&
           rest.at[len] != '{' && rest.at[len] != '"')
        len++;
    if (len == 0 || len == rest.len)
        return bad(array);
    array->element = str_make(rest.at, len);
    array->after   = true;
    skip(array, len);
    return str_is_nocase(array->element, STR("null")) ? PG_ARRAY_NULL : PG_ARRAY_ELEMENT;
}

static enum pg_array_event next_inside(struct pg_array *array)
{
    if (front(array) == '}')
        return close_array(array);
    if (array->after) {
        if (front(array) != array->separator)
            return bad(array);
        skip(array, 1);
        array->after = false;
        if (front(array) == '}')
            return bad(array);
    }
    switch (front(array)) {
    case '{': return open_array(array);
    case '"': return quoted(array);
    default: return plain(array);
    }
}

enum pg_array_event pg_array_next(struct pg_array *array)
{
    if (array->depth > 0)
        return next_inside(array);
    if (!array->begun)
        return front(array) == '{' ? open_array(array) : bad(array);
    return array->rest.len == 0 ? PG_ARRAY_END : bad(array);
}

/* --- from JSON ------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
};

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

static void skip_spaces(struct reader *reader)
{
    while (reader->at < reader->end && is_space(*reader->at))
        reader->at++;
}

static void skip_string(struct reader *reader)
{
    for (reader->at++; reader->at < reader->end && *reader->at != '"'; reader->at++)
        if (*reader->at == '\\')
            reader->at++;
    if (reader->at < reader->end)
        reader->at++;
}

/* A document that is well formed: up to its end. */
static struct str take_document(struct reader *reader)
{
    const char *start = reader->at;
    unsigned    depth = 0;

    while (reader->at < reader->end) {
        char byte = *reader->at;

        if (depth == 0 && (byte == ',' || byte == ']' || byte == '}'))
            break;
        if (byte == '"') {
            skip_string(reader);
            continue;
        }
        depth += byte == '[' || byte == '{';
        depth -= byte == ']' || byte == '}';
        reader->at++;
    }
    if (reader->at > reader->end)
        reader->at = reader->end;
    return str_make(start, (size_t)(reader->at - start));
}

static void add_quoted(struct buf *out, struct str text)
{
    buf_add_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '"' || text.at[i] == '\\')
            buf_add_byte(out, '\\');
        buf_add_byte(out, text.at[i]);
    }
    buf_add_byte(out, '"');
}

static void add_string(struct buf *out, struct str document)
{
    struct json_span span;
    struct buf       text;
    char            *to;

    json_span(&span, document.at + 1, document.at + document.len);
    buf_init(&text, span.text.len + 1);
    to = buf_reserve(&text, span.text.len + 1);
    if (to && !span.fault)
        add_quoted(out, str_make(to, json_unescape(to, span.text)));
    else
        out->failed = true;
    buf_fini(&text);
}

static void add_array(struct buf *out, struct reader *reader, bool of_json);

static void add_element(struct buf *out, struct reader *reader, bool of_json)
{
    struct str document;

    if (*reader->at == '[' && !of_json) {
        add_array(out, reader, of_json);
        return;
    }
    document = str_trim(take_document(reader));
    if (str_is(document, STR("null")))
        buf_add_str(out, STR("NULL"));
    else if (of_json || (document.len && document.at[0] == '{'))
        add_quoted(out, document);
    else if (document.len && document.at[0] == '"')
        add_string(out, document);
    else
        buf_add_str(out, document);
}

/* As deep as the encoder goes. */
static void add_array(struct buf *out, struct reader *reader, bool of_json)
{
    reader->at++;
    buf_add_byte(out, '{');
    for (skip_spaces(reader); reader->at < reader->end && *reader->at != ']'; skip_spaces(reader)) {
        if (*reader->at == ',') {
            buf_add_byte(out, *reader->at++);
            continue;
        }
        if (*reader->at == '}') {
            out->failed = true;
            return;
        }
        add_element(out, reader, of_json);
    }
    reader->at += reader->at < reader->end;
    buf_add_byte(out, '}');
}

bool pg_array_from_json(struct buf *out, struct str json, bool of_json)
{
    struct reader reader = { json.at, json.at + json.len };

    skip_spaces(&reader);
    if (reader.at == reader.end || *reader.at != '[')
        return false;
    add_array(out, &reader, of_json);
    return true;
}
