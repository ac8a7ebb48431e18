/* JSON. What the decoder takes is what a reader by the grammar's letter takes, to the same depth; and it
 * is encoded to a text that is taken as well, and that is the same from then on:
 * JSON -> Lua -> JSON' -> Lua -> JSON'. links: srv_bind */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/ljson.h"

enum { DEPTH_LOW = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

/* --- by the letter of RFC 8259 ------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
    unsigned    depth_left;
};

static bool sound_value(struct reader *r);

static int next_byte(struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool takes(struct reader *r, int byte)
{
    bool there = next_byte(r) == byte;

    r->at += there;
    return there;
}

static void skip_blanks(struct reader *r)
{
    while (takes(r, ' ') || takes(r, '\t') || takes(r, '\n') || takes(r, '\r'))
        continue;
}

static bool sound_word(struct reader *r, const char *word)
{
    while (*word)
        if (!takes(r, *word++))
            return false;
    return true;
}

static bool skip_digits(struct reader *r)
{
    const char *from = r->at;

    while (r->at < r->end && isdigit(next_byte(r)))
        r->at++;
    return r->at > from;
}

/* strtod() wants a NUL, and strndup() is held to look for one beyond the input (strict_string_checks). */
static double value_of(const char *from, size_t len)
{
    char  *text = malloc(len + 1);
    double value;

    assert(text);
    memcpy(text, from, len);
    text[len] = '\0';
    value     = strtod(text, NULL);
    free(text);
    return value;
}

/* And not beyond what a double can hold. */
static bool sound_number(struct reader *r)
{
    const char *from = r->at;

    takes(r, '-');
    if (!takes(r, '0') && !skip_digits(r))
        return false;
    if (takes(r, '.') && !skip_digits(r))
        return false;
    if (takes(r, 'e') || takes(r, 'E')) {
        if (!takes(r, '+'))
            takes(r, '-');
        if (!skip_digits(r))
            return false;
    }
    return isfinite(value_of(from, (size_t)(r->at - from)));
}

static int read_hex(struct reader *r)
{
    char digits[5] = "";

    for (int i = 0; i < 4; i++) {
        if (!isxdigit(next_byte(r)))
            return -1;
        digits[i] = *r->at++;
    }
    return (int)strtol(digits, NULL, 16);
}

static bool sound_escape(struct reader *r)
{
    int unit;

    if (!takes(r, 'u')) {
        bool known = next_byte(r) > 0 && strchr("\"\\/bfnrt", next_byte(r));

        r->at += known;
        return known;
    }
    unit = read_hex(r);
    if (unit < 0xd800 || unit > 0xdfff)
        return unit >= 0;
    if (unit > 0xdbff || !takes(r, '\\') || !takes(r, 'u'))
        return false;
    unit = read_hex(r);
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* A code point beyond ASCII, by what its bytes decode to. */
static bool sound_sequence(struct reader *r)
{
    static const int LEAST[] = { 0, 0x80, 0x800, 0x10000 };
    int              lead    = next_byte(r);
    int              more    = lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : 0;
    int              point   = lead & (0x3f >> more);

    r->at++;
    for (int i = 0; i < more; i++) {
        if (next_byte(r) >> 6 != 2)
            return false;
        point = point << 6 | (*r->at++ & 0x3f);
    }
    return more && point >= LEAST[more] && point <= 0x10ffff && point >> 11 != 27;
}

static bool sound_string(struct reader *r)
{
    if (!takes(r, '"'))
        return false;
    while (!takes(r, '"')) {
        int byte = next_byte(r);

        if (byte < 0x20)
            return false;
        if (byte > 0x7f ? !sound_sequence(r) : takes(r, '\\') ? !sound_escape(r) : !takes(r, byte))
            return false;
    }
    return true;
}

static bool sound_member(struct reader *r, bool named)
{
    skip_blanks(r);
    if (named) {
        if (!sound_string(r))
            return false;
        skip_blanks(r);
        if (!takes(r, ':'))
            return false;
        skip_blanks(r);
    }
    if (!sound_value(r))
        return false;
    skip_blanks(r);
    return true;
}

static bool sound_container(struct reader *r, char closing)
{
    if (!r->depth_left)
        return false;
    r->depth_left--;
    skip_blanks(r);
    if (!takes(r, closing)) {
        do
            if (!sound_member(r, closing == '}'))
                return false;
        while (takes(r, ','));
        if (!takes(r, closing))
            return false;
    }
    r->depth_left++;
    return true;
}

static bool sound_value(struct reader *r)
{
    switch (next_byte(r)) {
    case '{': r->at++; return sound_container(r, '}');
    case '[': r->at++; return sound_container(r, ']');
    case '"': return sound_string(r);
    case 't': return sound_word(r, "true");
    case 'f': return sound_word(r, "false");
    case 'n': return sound_word(r, "null");
    default: return sound_number(r);
    }
}

static bool is_sound(struct str text, unsigned depth_max, bool strict)
{
    size_t        mark = str_starts_with(text, STR("\xef\xbb\xbf")) ? 3 : 0; /* of byte order */
    struct reader r    = { text.at + mark, text.at + text.len, depth_max };

    skip_blanks(&r);
    if (strict && next_byte(&r) != '{' && next_byte(&r) != '[')
        return false;
    if (!sound_value(&r))
        return false;
    skip_blanks(&r);
    return r.at == r.end;
}

/* --- ours ---------------------------------------------------------------------------------------- */

static void check_taken(lua_State *L, struct str text, unsigned depth_max, bool strict)
{
    struct ljson_decode options = { .depth_max = depth_max, .strict = strict };

    lua_settop(L, 0);
    must((ljson_decode(L, text, &options) == 1) == is_sound(text, depth_max, strict));
}

/* Decodes TEXT, encodes what came of it to OUT. False: refused. */
static int through(lua_State *L, struct str text, struct buf *out, unsigned flags)
{
    struct ljson_decode options = { .depth_max = LJSON_DEPTH_MAX };

    lua_settop(L, 0);
    if (ljson_decode(L, text, &options) != 1)
        return 0;
    must(lua_gettop(L) == 1);
    buf_clear(out);
    must(ljson_encode(L, 1, out, flags) == LJSON_OK);
    must(lua_gettop(L) == 1);
    return 1;
}

static void check_round_trip(lua_State *L, struct str text, struct buf *once, struct buf *twice)
{
    if (!through(L, text, once, 0))
        return;
    must(through(L, buf_str(once), twice, 0));
    must(str_is(buf_str(once), buf_str(twice)));

    must(through(L, buf_str(once), twice, LJSON_PRETTY));
    must(through(L, buf_str(twice), twice, 0));
    must(str_is(buf_str(once), buf_str(twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static lua_State *L;
    static struct buf once, twice;
    struct str        text = str_make((const char *)bytes, len);

    if (!L) {
        L = luaL_newstate();
        buf_init(&once, 64 << 20);
        buf_init(&twice, 64 << 20);
    }
    check_taken(L, text, LJSON_DEPTH_MAX, false);
    check_taken(L, text, DEPTH_LOW, true);
    check_round_trip(L, text, &once, &twice);
    return 0;
}
