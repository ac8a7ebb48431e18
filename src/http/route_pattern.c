/* Parsing of route patterns and host patterns, and the way back: a path from values. */
#include "http/route_pattern.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "http/route_segment.h"

/* --- types ----------------------------------------------------------------------------------- */

static const struct {
    struct str      name;
    enum route_type type;
} TYPES[] = {
    { STR_INIT("int"), ROUTE_INT },   { STR_INIT("number"), ROUTE_NUMBER },
    { STR_INIT("uuid"), ROUTE_UUID }, { STR_INIT("slug"), ROUTE_SLUG },
    { STR_INIT("hex"), ROUTE_HEX },   { STR_INIT("date"), ROUTE_DATE },
};

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static bool is_name_byte(char byte)
{
    return is_letter(byte) || (byte >= '0' && byte <= '9');
}

/* Words have no byte that means anything in a Lua pattern, "-" apart. */
static bool is_words(struct str rule)
{
    for (size_t i = 0; i < rule.len; i++)
        if (!is_name_byte(rule.at[i]) && rule.at[i] != '-' && rule.at[i] != '|')
            return false;
    return true;
}

/* "en||de" would make the empty word match nothing, ever. */
static bool has_empty_word(struct str rule)
{
    return rule.at[0] == '|' || str_ends_with(rule, STR("|")) || memmem(rule.at, rule.len, "||", 2);
}

static int read_type(struct route_param *param, struct str rule, struct err *err)
{
    bool has_bar = str_find(rule, '|') < rule.len;

    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
        if (str_is(rule, TYPES[i].name)) {
            param->type = TYPES[i].type;
            return 0;
        }
    if (rule.len == 0)
        return err_set(err, ERR_INVALID, "empty type");
    if (has_bar && !is_words(rule))
        return err_set(err, ERR_INVALID, "type <%.*s>: a Lua pattern has no \"|\"", STR_ARG(rule));
    if (has_bar && has_empty_word(rule))
        return err_set(err, ERR_INVALID, "type <%.*s>: empty word", STR_ARG(rule));
    if (!has_bar && is_words(rule))
        return err_set(err, ERR_INVALID,
                       "unknown type <%.*s>: int number uuid slug hex date, words (a|b) or a Lua "
                       "pattern",
                       STR_ARG(rule));
    param->type = has_bar ? ROUTE_WORDS : ROUTE_LUA;
    param->rule = rule;
    return 0;
}

/* --- parsing --------------------------------------------------------------------------------- */

struct parser {
    struct route_pattern *pattern;
    struct err           *err;
    struct str            text;
    size_t                at;
    char                  separator; /* "/" of a path, "." of a host */
    char                 *decoded;   /* where the next byte of fixed text goes */
    struct route_segment *segment;   /* being read */
};

static bool is_end(const struct parser *p)
{
    return p->at == p->text.len;
}

static char peek(const struct parser *p)
{
    return p->text.at[p->at];
}

static bool takes(struct parser *p, const char *token)
{
    struct str rest = str_from(p->text, p->at);

    if (!str_starts_with(rest, str_of(token)))
        return false;
    p->at += strlen(token);
    return true;
}

static bool ends_segment(const struct parser *p)
{
    return is_end(p) || peek(p) == p->separator;
}

static struct route_part *add_part(struct parser *p, int param)
{
    struct route_part *part = &p->pattern->parts[p->pattern->part_count++];

    p->segment->part_count++;
    *part = (struct route_part){ .param = param };
    return part;
}

static struct route_part *last_part(const struct parser *p)
{
    return p->segment->part_count ? &p->pattern->parts[p->pattern->part_count - 1] : NULL;
}

static void add_text(struct parser *p, char byte)
{
    struct route_part *part = last_part(p);

    if (!part || part->param >= 0) {
        part          = add_part(p, -1);
        part->text.at = p->decoded;
    }
    *p->decoded++ = byte;
    part->text.len++;
}

static int add_escape(struct parser *p)
{
    struct str rest = str_from(p->text, p->at);
    int        high = rest.len > 2 ? codec_hex_digit(rest.at[1]) : -1;
    int        low  = rest.len > 2 ? codec_hex_digit(rest.at[2]) : -1;

    if (high < 0 || low < 0)
        return err_set(p->err, ERR_INVALID,
                       "\"%%\" without two hex digits (a percent sign is %%25)");
    p->at += 3;
    add_text(p, (char)(high << 4 | low));
    return 0;
}

static struct str read_name(struct parser *p)
{
    size_t start = p->at;

    if (!is_end(p) && is_letter(peek(p)))
        while (!is_end(p) && is_name_byte(peek(p)))
            p->at++;
    return str_make(p->text.at + start, p->at - start);
}

static int add_param(struct parser *p, struct str name, enum route_type type)
{
    struct route_pattern *pattern = p->pattern;

    if (pattern->param_count == ROUTE_PARAMS_MAX)
        return err_set(p->err, ERR_TOO_LARGE, "more than %d parameters", ROUTE_PARAMS_MAX);
    add_part(p, (int)pattern->param_count);
    pattern->params[pattern->param_count++] = (struct route_param){ .name = name, .type = type };
    return 0;
}

/* The ">" that ends a type; "%>" belongs to a Lua pattern. */
static int read_rule(struct parser *p, struct route_param *param)
{
    size_t start = p->at;

    while (!is_end(p) && peek(p) != '>')
        p->at += peek(p) == '%' && p->at + 1 < p->text.len ? 2 : 1;
    if (is_end(p))
        return err_set(p->err, ERR_INVALID, "\"<\" without \">\"");
    p->at++;
    return read_type(param, str_make(p->text.at + start, p->at - 1 - start), p->err);
}

/* ":" has been read. */
static int read_param(struct parser *p)
{
    struct route_part *before = last_part(p);
    struct str         name   = read_name(p);
    int                rc;

    if (name.len == 0)
        return err_set(p->err, ERR_INVALID, "\":\" without a name (a colon is \"::\")");
    if (before && before->param >= 0)
        return err_set(p->err, ERR_INVALID, "nothing between two parameters at :%.*s",
                       STR_ARG(name));
    rc = add_param(p, name, ROUTE_TEXT);
    if (rc == 0 && takes(p, "<"))
        rc = read_rule(p, &p->pattern->params[p->pattern->param_count - 1]);
    return rc;
}

/* "?" has been read. */
static int read_optional(struct parser *p)
{
    struct route_pattern *pattern = p->pattern;
    struct route_part    *part    = last_part(p);

    if (p->separator != '/' || p->segment->part_count != 1 || part->param < 0 || !is_end(p))
        return err_set(p->err, ERR_INVALID,
                       "\"?\" may only stand behind a parameter that is the whole last segment");
    pattern->params[part->param].optional = true;
    pattern->optional                     = true;
    return 0;
}

/* "*" has been read. A path's wildcard stands last, a host's first. */
static int read_tail(struct parser *p)
{
    struct route_pattern *pattern  = p->pattern;
    bool                  is_whole = p->segment->part_count == 0;
    struct str            name     = read_name(p);
    bool                  is_placed =
        p->separator == '/' ? is_end(p) : ends_segment(p) && pattern->segment_count == 1;

    if (!is_whole || !is_placed)
        return err_set(p->err, ERR_INVALID,
                       p->separator == '/'
                           ? "a wildcard must be the whole last segment (a star is \"**\")"
                           : "a wildcard must be the whole first label");
    p->segment->class = ROUTE_TAIL;
    return add_param(p, name.len ? name : STR("*"), ROUTE_REST);
}

static int read_token(struct parser *p)
{
    if (takes(p, "::"))
        return add_text(p, ':'), 0;
    if (takes(p, "**"))
        return add_text(p, '*'), 0;
    if (takes(p, ":"))
        return read_param(p);
    if (takes(p, "*"))
        return read_tail(p);
    if (takes(p, "?"))
        return read_optional(p);

    switch (peek(p)) {
    case '%': return add_escape(p);
    case '<':
    case '>':
    case '#': return err_set(p->err, ERR_INVALID, "\"%c\" must be percent-encoded", peek(p));
    default: add_text(p, p->text.at[p->at++]); return 0;
    }
}

static enum route_class class_of(const struct route_pattern *pattern,
                                 const struct route_segment *segment)
{
    const struct route_part *part = &pattern->parts[segment->first_part];

    if (segment->class == ROUTE_TAIL)
        return ROUTE_TAIL;
    if (segment->part_count == 0 || (segment->part_count == 1 && part->param < 0))
        return ROUTE_FIXED;
    if (segment->part_count == 1 && pattern->params[part->param].type == ROUTE_TEXT)
        return ROUTE_PLAIN;
    return ROUTE_PARTLY;
}

static int read_segment(struct parser *p)
{
    struct route_pattern *pattern = p->pattern;
    int                   rc      = 0;

    if (pattern->segment_count == ROUTE_SEGMENTS_MAX)
        return err_set(p->err, ERR_TOO_LARGE, "more than %d segments", ROUTE_SEGMENTS_MAX);
    p->segment  = &pattern->segments[pattern->segment_count++];
    *p->segment = (struct route_segment){ .first_part = pattern->part_count };
    while (rc == 0 && !ends_segment(p))
        rc = read_token(p);
    p->segment->class = class_of(pattern, p->segment);
    return rc;
}

/* The first "/" stands before the first segment; what is empty behind the last is no segment but
 * the slash at the end. */
static int read_path(struct parser *p)
{
    int rc = 0;

    if (is_end(p)) {
        p->pattern->slash = true;
        return 0;
    }
    if (!takes(p, "/"))
        return err_set(p->err, ERR_INVALID, "a path begins with \"/\"");
    while (rc == 0 && !is_end(p)) {
        rc = read_segment(p);
        if (rc == 0 && is_end(p))
            return 0;
        p->at++;
    }
    p->pattern->slash = true;
    return rc;
}

static int read_host(struct parser *p)
{
    int rc = 0;

    do {
        rc = read_segment(p);
        if (rc == 0 && p->segment->part_count == 0)
            rc = err_set(p->err, ERR_INVALID, "an empty label");
    } while (rc == 0 && takes(p, "."));
    return rc;
}

/* Room for the most that TEXT can hold; the spans lie behind the tables. */
static struct route_pattern *pattern_alloc(struct str text, char separator)
{
    size_t params = 0, segments = 1;

    for (size_t i = 0; i < text.len; i++) {
        params += text.at[i] == ':' || text.at[i] == '*';
        segments += text.at[i] == separator;
    }
    params   = params < ROUTE_PARAMS_MAX ? params : ROUTE_PARAMS_MAX;
    segments = segments < ROUTE_SEGMENTS_MAX ? segments : ROUTE_SEGMENTS_MAX;

    struct route_pattern *pattern;
    size_t                parts = 2 * params + segments;
    size_t                bytes = sizeof(*pattern) + params * sizeof(*pattern->params) +
                   parts * sizeof(*pattern->parts) + segments * sizeof(*pattern->segments);
    char *block = calloc(1, bytes + 2 * text.len);

    if (!block) {
        fputs("srv: out of memory\n", stderr);
        abort();
    }
    pattern           = (struct route_pattern *)(void *)block;
    pattern->params   = (struct route_param *)(void *)(pattern + 1);
    pattern->parts    = (struct route_part *)(void *)(pattern->params + params);
    pattern->segments = (struct route_segment *)(void *)(pattern->parts + parts);
    pattern->text     = str_make(block + bytes, text.len);
    memcpy(block + bytes, text.at, text.len);
    return pattern;
}

static struct route_pattern *parse(struct str text, char separator, struct err *err)
{
    if (text.len > ROUTE_PATTERN_BYTES_MAX) {
        err_set(err, ERR_TOO_LARGE, "a pattern of more than %d bytes", ROUTE_PATTERN_BYTES_MAX);
        return NULL;
    }

    struct route_pattern *pattern = pattern_alloc(text, separator);
    struct parser         p       = { .pattern   = pattern,
                                      .err       = err,
                                      .text      = pattern->text,
                                      .separator = separator,
                                      .decoded   = (char *)pattern->text.at + text.len };

    if ((separator == '/' ? read_path(&p) : read_host(&p)) < 0) {
        route_pattern_free(pattern);
        return NULL;
    }
    return pattern;
}

struct route_pattern *route_pattern_new(struct str text, struct err *err)
{
    return parse(text, '/', err);
}

struct route_pattern *route_host_new(struct str text, struct err *err)
{
    struct route_pattern *pattern = parse(text, '.', err);

    for (unsigned i = 0; pattern && i < pattern->part_count; i++)
        for (size_t at = 0; at < pattern->parts[i].text.len; at++) {
            char *byte = (char *)pattern->parts[i].text.at + at;

            if (*byte >= 'A' && *byte <= 'Z')
                *byte = (char)(*byte | 0x20);
        }
    return pattern;
}

void route_pattern_free(struct route_pattern *pattern)
{
    free(pattern);
}

/* --- questions ------------------------------------------------------------------------------- */

struct str route_pattern_text(const struct route_pattern *pattern)
{
    return pattern->text;
}

unsigned route_pattern_segments(const struct route_pattern *pattern)
{
    return pattern->segment_count;
}

unsigned route_pattern_param_count(const struct route_pattern *pattern)
{
    return pattern->param_count;
}

const struct route_param *route_pattern_param(const struct route_pattern *pattern, unsigned index)
{
    assert(index < pattern->param_count);
    return &pattern->params[index];
}

int route_pattern_repeated(const struct route_pattern *pattern)
{
    for (unsigned i = 1; i < pattern->param_count; i++)
        for (unsigned before = 0; before < i; before++)
            if (str_is(pattern->params[before].name, pattern->params[i].name))
                return (int)i;
    return -1;
}

/* --- the way back ---------------------------------------------------------------------------- */

struct builder {
    const struct route_pattern *pattern;
    const struct str           *values;
    struct route_accept         accept;
    struct buf                 *out;
    struct err                 *err;
};

static int build_param(struct builder *b, int index)
{
    const struct route_param *param = &b->pattern->params[index];
    struct str                value = b->values[index];

    if (!value.at)
        return err_set(b->err, ERR_INVALID, "parameter \"%.*s\" is missing", STR_ARG(param->name));
    if ((b->accept.fn || param->type != ROUTE_LUA) && !route_value_fits(param, value, b->accept))
        return err_set(b->err, ERR_INVALID, "parameter \"%.*s\": \"%.*s\" does not fit",
                       STR_ARG(param->name), STR_ARG(value));
    codec_percent(b->out, value,
                  param->type == ROUTE_REST ? CODEC_KEEP_PATH : CODEC_KEEP_UNRESERVED);
    return 0;
}

static int build_segment(struct builder *b, const struct route_segment *segment)
{
    const struct route_part *part = &b->pattern->parts[segment->first_part];
    int                      rc   = 0;

    for (unsigned i = 0; rc == 0 && i < segment->part_count; i++, part++)
        if (part->param >= 0)
            rc = build_param(b, part->param);
        else
            codec_percent(b->out, part->text, CODEC_KEEP_UNRESERVED);
    return rc;
}

/* Clients resolve "." and ".." before they ask, encoded ones too: no such URL would arrive. */
static bool has_dot_segment(struct str path)
{
    struct str segment;

    while (str_next(&path, '/', &segment))
        if (str_is(segment, STR(".")) || str_is(segment, STR("..")))
            return true;
    return false;
}

int route_pattern_build(const struct route_pattern *pattern, const struct str *values,
                        route_accept_fn accepts, void *arg, struct buf *out, struct err *err)
{
    struct builder b        = { pattern, values, { accepts, arg }, out, err };
    size_t         start    = out->len;
    unsigned       segments = pattern->segment_count;
    int            rc       = 0;

    if (pattern->optional && !values[pattern->param_count - 1].at)
        segments--;
    for (unsigned i = 0; rc == 0 && i < segments; i++) {
        buf_add_byte(out, '/');
        rc = build_segment(&b, &pattern->segments[i]);
    }
    if (segments == 0 || pattern->slash)
        buf_add_byte(out, '/');
    if (rc == 0 && out->failed)
        rc = err_set(err, ERR_TOO_LARGE, "path too long");
    else if (rc == 0 && has_dot_segment(str_from(buf_str(out), start)))
        rc = err_set(err, ERR_INVALID, "a path cannot hold a segment \".\" or \"..\"");
    if (rc < 0)
        out->len = start;
    return rc;
}
