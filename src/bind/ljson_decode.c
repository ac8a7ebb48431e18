/* JSON to Lua values: one pass, values straight onto the stack.
 *
 * The elements of a container wait on the stack, so that its table is made with the right size; of
 * a long one they are moved into it in portions. */
#include "bind/ljson_decode.h"

#include <assert.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/number.h"
#include "bind/lerror.h"
#include "bind/ljson_table.h"

enum {
    PORTION        = 16,  /* elements (of an object: members) that wait on the stack */
    UNESCAPE_BYTES = 512, /* of a string with escapes, without a userdata */
    PATH_BYTES_MAX = 256, /* of the path in an error */
};

/* Where in a container we are. */
struct step {
    enum { BETWEEN, AT_MEMBER, AT_ITEM } place;
    struct str key;   /* the member's, as it stands in the text */
    unsigned   index; /* the item's, from 0 on */
};

struct decoder {
    lua_State  *L;
    const char *start, *at, *end;
    unsigned    depth, depth_max;
    int         marks; /* two places on the stack: objects' and arrays', nil until needed */
    const char *fault; /* what is wrong, at `at` */
    struct step steps[LJSON_DEPTH_MAX];
};

static bool read_value(struct decoder *d);

static bool fail(struct decoder *d, const char *fault)
{
    d->fault = fault;
    return false;
}

/* --- tokens ---------------------------------------------------------------------------------- */

static void skip_blanks(struct decoder *d)
{
    while (d->at < d->end && (*d->at == ' ' || *d->at == '\n' || *d->at == '\t' || *d->at == '\r'))
        d->at++;
}

static bool takes(struct decoder *d, char byte)
{
    skip_blanks(d);
    if (d->at == d->end || *d->at != byte)
        return false;
    d->at++;
    return true;
}

static bool read_word(struct decoder *d, const char *word, size_t len)
{
    if ((size_t)(d->end - d->at) < len || memcmp(d->at, word, len) != 0)
        return fail(d, "an unknown word");
    d->at += len;
    return true;
}

static bool read_number(struct decoder *d)
{
    struct str    rest = str_make(d->at, (size_t)(d->end - d->at));
    struct number number;

    number_read(rest, &number);
    if (number.kind == NUMBER_HUGE)
        return fail(d, "a number beyond what a double can hold");
    if (number.kind == NUMBER_BIG)
        lua_pushlstring(d->L, rest.at, number.len);
    else if (number.kind != NUMBER_NONE)
        lua_pushnumber(d->L, number.value);
    d->at += number.len;
    return number.kind != NUMBER_NONE || fail(d, "not a number as JSON writes them");
}

static void push_unescaped(lua_State *L, struct str text)
{
    char  at_hand[UNESCAPE_BYTES];
    char *to = text.len <= sizeof(at_hand) ? at_hand : lua_newuserdata(L, text.len);

    lua_pushlstring(L, to, json_unescape(to, text));
    if (to != at_hand)
        lua_remove(L, -2);
}

/* The opening quote has been read. TEXT (NULL: not wanted) is the string as it stands. */
static bool read_string(struct decoder *d, struct str *text)
{
    struct json_span span;

    json_span(&span, d->at, d->end);
    d->at = span.text.at + span.text.len;
    if (span.fault)
        return fail(d, span.fault);
    d->at++;
    if (span.escaped)
        push_unescaped(d->L, span.text);
    else
        lua_pushlstring(d->L, span.text.at, span.text.len);
    if (text)
        *text = span.text;
    return true;
}

/* --- containers ------------------------------------------------------------------------------ */

/* Its elements lie on the stack from BASE on: below them the table, once it is made. */
struct container {
    int      base;
    bool     is_made;
    unsigned waiting; /* elements on the stack */
    unsigned count;   /* elements in the table */
};

static bool enter(struct decoder *d, struct container *c)
{
    if (d->depth == d->depth_max)
        return fail(d, "nested too deeply");
    if (!lua_checkstack(d->L, 2 * PORTION + 8))
        return fail(d, "nested too deeply for the stack");
    d->depth++;
    d->steps[d->depth - 1].place = BETWEEN;
    *c                           = (struct container){ .base = lua_gettop(d->L) + 1 };
    return true;
}

/* Below the elements that wait. */
static void make_table(lua_State *L, struct container *c, int items, int members)
{
    if (c->is_made)
        return;
    lua_createtable(L, items, members);
    lua_insert(L, c->base);
    c->is_made = true;
}

static void move_items(lua_State *L, struct container *c)
{
    make_table(L, c, (int)c->waiting, 0);
    for (unsigned i = c->waiting; i > 0; i--)
        lua_rawseti(L, c->base, (int)(c->count + i));
    c->count += c->waiting;
    c->waiting = 0;
}

/* From the first on, so that the last of equal keys stays. */
static void move_members(lua_State *L, struct container *c)
{
    make_table(L, c, 0, (int)c->waiting);
    for (int at = c->base + 1, end = at + 2 * (int)c->waiting; at < end; at += 2) {
        lua_pushvalue(L, at);
        lua_pushvalue(L, at + 1);
        lua_rawset(L, c->base);
    }
    lua_settop(L, c->base);
    c->count += c->waiting;
    c->waiting = 0;
}

/* Marks the table on top of the stack. */
static void mark(struct decoder *d, enum ljson_mark which)
{
    lua_State *L     = d->L;
    int        place = d->marks + (which == LJSON_MARK_ARRAY);

    if (lua_isnil(L, place)) {
        ljson_push_mark(L, which);
        lua_replace(L, place);
    }
    lua_pushvalue(L, place);
    lua_setmetatable(L, -2);
}

static bool read_items(struct decoder *d, struct container *c)
{
    struct step *step = &d->steps[d->depth - 1];

    do {
        step->place = AT_ITEM;
        step->index = c->count + c->waiting;
        skip_blanks(d);
        if (!read_value(d))
            return false;
        step->place = BETWEEN;
        if (++c->waiting == PORTION)
            move_items(d->L, c);
    } while (takes(d, ','));
    return takes(d, ']') || fail(d, "expected \",\" or \"]\"");
}

/* "[" has been read. */
static bool read_array(struct decoder *d)
{
    struct container c;

    if (!enter(d, &c))
        return false;
    if (!takes(d, ']') && !read_items(d, &c))
        return false;
    move_items(d->L, &c);
    mark(d, LJSON_MARK_ARRAY);
    d->depth--;
    return true;
}

static bool read_member(struct decoder *d, struct step *step)
{
    if (!takes(d, '"'))
        return fail(d, "expected a name in quotes");
    if (!read_string(d, &step->key))
        return false;
    step->place = AT_MEMBER;
    if (!takes(d, ':'))
        return fail(d, "expected \":\"");
    skip_blanks(d);
    return read_value(d);
}

static bool read_members(struct decoder *d, struct container *c)
{
    struct step *step = &d->steps[d->depth - 1];

    do {
        if (!read_member(d, step))
            return false;
        step->place = BETWEEN;
        if (++c->waiting == PORTION)
            move_members(d->L, c);
    } while (takes(d, ','));
    return takes(d, '}') || fail(d, "expected \",\" or \"}\"");
}

/* "{" has been read. */
static bool read_object(struct decoder *d)
{
    struct container c;

    if (!enter(d, &c))
        return false;
    if (!takes(d, '}') && !read_members(d, &c))
        return false;
    move_members(d->L, &c);
    mark(d, LJSON_MARK_OBJECT);
    d->depth--;
    return true;
}

static bool read_value(struct decoder *d)
{
    if (d->at == d->end)
        return fail(d, "the text ends where a value is expected");
    switch (*d->at) {
    case '"': d->at++; return read_string(d, NULL);
    case '{': d->at++; return read_object(d);
    case '[': d->at++; return read_array(d);
    case 't': lua_pushboolean(d->L, 1); return read_word(d, "true", 4);
    case 'f': lua_pushboolean(d->L, 0); return read_word(d, "false", 5);
    case 'n': ljson_push_null(d->L); return read_word(d, "null", 4);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return read_number(d);
    default: return fail(d, "expected a value");
    }
}

/* --- errors ---------------------------------------------------------------------------------- */

/* A JSON pointer (RFC 6901); parts that do not fit are left out at the end. */
struct pointer {
    char   text[PATH_BYTES_MAX];
    size_t len;
};

static void add_byte(struct pointer *p, char byte)
{
    if (p->len < sizeof(p->text))
        p->text[p->len++] = byte;
}

static void add_bytes(struct pointer *p, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        add_byte(p, bytes.at[i]);
}

static void add_key(struct pointer *p, struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        if (key.at[i] == '~')
            add_bytes(p, STR("~0"));
        else if (key.at[i] == '/')
            add_bytes(p, STR("~1"));
        else
            add_byte(p, key.at[i]);
    }
}

static void add_step(struct pointer *p, const struct step *step)
{
    char   digits[NUMBER_TEXT_MAX];
    size_t before = p->len;

    if (step->place == BETWEEN)
        return;
    add_byte(p, '/');
    if (step->place == AT_MEMBER)
        add_key(p, step->key);
    else
        add_bytes(p, str_make(digits, number_format_u64(digits, step->index)));
    if (p->len == sizeof(p->text))
        p->len = before;
}

/* Of the fault, both from 1 on; columns count characters. */
static void find_place(const struct decoder *d, int *line, int *column)
{
    *line = *column = 1;
    for (const char *at = d->start; at < d->at; at++) {
        if (*at == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*at & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static int push_fault(struct decoder *d)
{
    lua_State     *L    = d->L;
    struct pointer path = { .len = 0 };
    int            line, column;

    for (unsigned i = 0; i < d->depth; i++)
        add_step(&path, &d->steps[i]);
    find_place(d, &line, &column);

    lua_pushlstring(L, path.text, path.len);
    lerror_nil(L, "bad_json", "line %d, column %d: %s%s%s", line, column, d->fault,
               path.len ? " at " : "", lua_tostring(L, -1));
    lua_pushinteger(L, line);
    lua_setfield(L, -2, "line");
    lua_pushinteger(L, column);
    lua_setfield(L, -2, "column");
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "path");
    lua_remove(L, -3);
    return 2;
}

/* --- the whole ------------------------------------------------------------------------------- */

static bool read_text(struct decoder *d, bool strict)
{
    skip_blanks(d);
    if (strict && d->at < d->end && *d->at != '{' && *d->at != '[')
        return fail(d, "expected an object or an array");
    if (!read_value(d))
        return false;
    skip_blanks(d);
    return d->at == d->end || fail(d, "something behind the value");
}

int ljson_decode(lua_State *L, struct str text, const struct ljson_decode *options)
{
    static const struct ljson_decode DEFAULTS = { .depth_max = LJSON_DEPTH };
    struct decoder                   d; /* not cleared: steps are set before they are read */
    int                              top = lua_gettop(L);

    if (!options)
        options = &DEFAULTS;
    d.L         = L;
    d.start     = text.at;
    d.at        = str_starts_with(text, STR("\xef\xbb\xbf")) ? text.at + 3 : text.at;
    d.end       = text.at + text.len;
    d.depth     = 0;
    d.depth_max = options->depth_max ? options->depth_max : LJSON_DEPTH;
    assert(d.depth_max <= LJSON_DEPTH_MAX);

    d.marks = top + 1;
    lua_settop(L, top + 2);
    if (read_text(&d, options->strict)) {
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return 1;
    }
    lua_settop(L, top);
    return push_fault(&d);
}
