/* The format: one byte FORMAT, then a value. A value is a tag and what belongs to it:
 *
 *     null, false, true   nothing
 *     whole               zigzag varint: a number without a fraction, up to 2^53
 *     number              eight bytes, as in memory
 *     string              varint length, bytes
 *     table               mark, varint count, that many values for the keys 1, 2, ...;
 *                         varint count, that many pairs of key and value, in the order of the keys
 *
 * Reading trusts nothing: Redis may hold anything. A count is believed only as far as there are bytes
 * for it, since every value takes one at least. */
#include "vm/marshal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"

enum { FORMAT = 0xC1 };

enum tag { TAG_NULL, TAG_FALSE, TAG_TRUE, TAG_WHOLE, TAG_NUMBER, TAG_STRING, TAG_TABLE };

static const double WHOLE_MAX = 9007199254740992.0; /* 2^53 */

/* --- writing ------------------------------------------------------------------------------------ */

struct writer {
    lua_State                  *L;
    const struct marshal_marks *marks;
    struct buf                 *out;
    const void                 *path[MARSHAL_DEPTH_MAX]; /* the tables around */
    unsigned                    depth;
};

static void add_varint(struct buf *out, uint64_t value)
{
    while (value >= 0x80) {
        buf_add_byte(out, (char)(value | 0x80));
        value >>= 7;
    }
    buf_add_byte(out, (char)value);
}

static bool is_whole(double number)
{
    return number >= -WHOLE_MAX && number <= WHOLE_MAX && number == floor(number) &&
           !(number == 0 && signbit(number));
}

static void add_number(struct buf *out, double number)
{
    if (is_whole(number)) {
        int64_t whole = (int64_t)number;

        buf_add_byte(out, TAG_WHOLE);
        add_varint(out, (uint64_t)whole << 1 ^ (whole < 0 ? UINT64_MAX : 0));
        return;
    }
    buf_add_byte(out, TAG_NUMBER);
    buf_add(out, &number, sizeof(number));
}

static void add_string(struct buf *out, struct str text)
{
    buf_add_byte(out, TAG_STRING);
    add_varint(out, text.len);
    buf_add(out, text.at, text.len);
}

static const char *add_value(struct writer *writer);

/* The value on top, which is taken off. */
static const char *add_top(struct writer *writer)
{
    const char *fault = add_value(writer);

    lua_pop(writer->L, 1);
    return fault;
}

/* A pair of a table, written and yet to be put in order. The key's text is Lua's, which the table
 * keeps alive: nothing here allocates in Lua, so nothing is collected. */
struct pair {
    int        type; /* of the key: LUA_TBOOLEAN, LUA_TNUMBER, LUA_TSTRING, in this order */
    double     number;
    struct str text;
    size_t     from, to; /* its bytes in writer->out */
};

struct pairs {
    struct pair *at; /* owned */
    size_t       count, room;
};

static int compare_pairs(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    size_t             both;
    int                order;

    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->type != LUA_TSTRING)
        return a->number < b->number ? -1 : a->number > b->number;
    both  = a->text.len < b->text.len ? a->text.len : b->text.len;
    order = both ? memcmp(a->text.at, b->text.at, both) : 0;
    if (order == 0 && a->text.len != b->text.len)
        order = a->text.len < b->text.len ? -1 : 1;
    return order;
}

/* Of a string the text only: lua_tolstring() would make text of a number, and confuse lua_next(). */
static bool read_key(lua_State *L, int index, struct pair *pair)
{
    *pair = (struct pair){ .type = lua_type(L, index) };
    switch (pair->type) {
    case LUA_TBOOLEAN: pair->number = lua_toboolean(L, index); return true;
    case LUA_TNUMBER: pair->number = lua_tonumber(L, index); return true;
    case LUA_TSTRING: pair->text.at = lua_tolstring(L, index, &pair->text.len); return true;
    default: return false;
    }
}

static bool is_in_sequence(const struct pair *pair, size_t sequence)
{
    return pair->type == LUA_TNUMBER && pair->number >= 1 && pair->number <= (double)sequence &&
           pair->number == floor(pair->number);
}

static struct pair *next_place(struct pairs *pairs)
{
    struct pair *more;

    if (pairs->count == pairs->room) {
        size_t room = pairs->room ? pairs->room * 2 : 8;

        more = realloc(pairs->at, room * sizeof(*more));
        if (!more)
            return NULL;
        pairs->at   = more;
        pairs->room = room;
    }
    return &pairs->at[pairs->count++];
}

static void add_key(struct buf *out, const struct pair *pair)
{
    switch (pair->type) {
    case LUA_TBOOLEAN: buf_add_byte(out, pair->number != 0 ? TAG_TRUE : TAG_FALSE); return;
    case LUA_TNUMBER: add_number(out, pair->number); return;
    default: add_string(out, pair->text); return;
    }
}

/* Key and value are on top. */
static const char *add_pair(struct writer *writer, struct pairs *pairs, size_t sequence)
{
    struct pair  pair;
    struct pair *place;
    const char  *fault;

    if (!read_key(writer->L, -2, &pair))
        return "a table with a key that is no string, number or boolean cannot be shared";
    if (is_in_sequence(&pair, sequence))
        return NULL;
    pair.from = writer->out->len;
    add_key(writer->out, &pair);
    fault   = add_value(writer);
    pair.to = writer->out->len;
    place   = next_place(pairs);
    if (!place)
        return "there is no memory to share this table";
    *place = pair;
    return fault;
}

/* What was written from FROM on becomes the pairs' number and they themselves in order. */
static void put_in_order(struct buf *out, size_t from, struct pairs *pairs)
{
    struct buf ordered;

    if (pairs->count > 1)
        qsort(pairs->at, pairs->count, sizeof(*pairs->at), compare_pairs);
    buf_init(&ordered, out->bytes_max);
    add_varint(&ordered, pairs->count);
    for (size_t i = 0; i < pairs->count; i++)
        buf_add(&ordered, out->at + pairs->at[i].from, pairs->at[i].to - pairs->at[i].from);
    out->len = from;
    buf_add_str(out, buf_str(&ordered));
    out->failed = out->failed || ordered.failed;
    buf_fini(&ordered);
}

/* The pairs of the table on top beyond 1..SEQUENCE. */
static const char *add_pairs(struct writer *writer, size_t sequence)
{
    struct pairs pairs = { 0 };
    size_t       from  = writer->out->len;
    const char  *fault = NULL;

    for (lua_pushnil(writer->L); lua_next(writer->L, -2); lua_pop(writer->L, 1)) {
        fault = add_pair(writer, &pairs, sequence);
        if (fault || writer->out->failed) {
            lua_pop(writer->L, 2);
            break;
        }
    }
    if (!fault && !writer->out->failed)
        put_in_order(writer->out, from, &pairs);
    free(pairs.at);
    return fault;
}

static int read_mark(struct writer *writer)
{
    int mark = 0;

    if (writer->marks && lua_getmetatable(writer->L, -1)) {
        mark = writer->marks->read(writer->L);
        lua_pop(writer->L, 1);
    }
    return mark;
}

/* How many of the keys 1, 2, ... have a value, one after the other. Equal tables may have been built
 * in different ways, so lua_objlen() may differ between them where there are holes. */
static size_t sequence_of(lua_State *L)
{
    size_t count = lua_objlen(L, -1);

    for (size_t i = 1; i <= count; i++) {
        bool is_nil;

        lua_rawgeti(L, -1, (int)i);
        is_nil = lua_isnil(L, -1);
        lua_pop(L, 1);
        if (is_nil)
            return i - 1;
    }
    return count;
}

static const char *add_items(struct writer *writer)
{
    size_t      count = sequence_of(writer->L);
    const char *fault = NULL;

    buf_add_byte(writer->out, TAG_TABLE);
    buf_add_byte(writer->out, (char)read_mark(writer));
    add_varint(writer->out, count);
    for (size_t i = 1; !fault && i <= count; i++) {
        lua_rawgeti(writer->L, -1, (int)i);
        fault = add_top(writer);
    }
    return fault ? fault : add_pairs(writer, count);
}

static const char *add_table(struct writer *writer)
{
    const void *table = lua_topointer(writer->L, -1);
    const char *fault;

    for (unsigned i = 0; i < writer->depth; i++)
        if (writer->path[i] == table)
            return "a table that contains itself cannot be shared";
    if (writer->depth == MARSHAL_DEPTH_MAX || !lua_checkstack(writer->L, 8))
        return "a table nested deeper than 64 levels cannot be shared";
    writer->path[writer->depth++] = table;
    fault                         = add_items(writer);
    writer->depth--;
    return fault;
}

static const char *refuse_type(int type)
{
    switch (type) {
    case LUA_TNIL: return "nil cannot be shared";
    case LUA_TFUNCTION: return "a function cannot be shared";
    case LUA_TTHREAD: return "a coroutine cannot be shared";
    case LUA_TUSERDATA: return "a userdata cannot be shared";
    default: return "a cdata or pointer cannot be shared";
    }
}

/* The value on top. */
static const char *add_value(struct writer *writer)
{
    lua_State *L = writer->L;
    struct str text;

    if (writer->out->failed)
        return NULL; /* too large already */
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN:
        buf_add_byte(writer->out, lua_toboolean(L, -1) ? TAG_TRUE : TAG_FALSE);
        return NULL;
    case LUA_TNUMBER: add_number(writer->out, lua_tonumber(L, -1)); return NULL;
    case LUA_TSTRING:
        text.at = lua_tolstring(L, -1, &text.len);
        add_string(writer->out, text);
        return NULL;
    case LUA_TTABLE: return add_table(writer);
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, -1) != NULL)
            return refuse_type(LUA_TLIGHTUSERDATA);
        buf_add_byte(writer->out, TAG_NULL); /* srv.null */
        return NULL;
    default: return refuse_type(lua_type(L, -1));
    }
}

const char *marshal_add(lua_State *L, int index, const struct marshal_marks *marks, struct buf *out)
{
    struct writer writer = { .L = L, .marks = marks, .out = out };

    if (!lua_checkstack(L, 8))
        return "there is no room on the stack to share this";
    buf_add_byte(out, (char)FORMAT);
    lua_pushvalue(L, index);
    return add_top(&writer);
}

/* --- reading -------------------------------------------------------------------------------------- */

struct reader {
    lua_State                  *L;
    const struct marshal_marks *marks;
    struct str                  rest;
    unsigned                    depth;
};

static bool take_byte(struct reader *reader, uint8_t *byte)
{
    if (reader->rest.len == 0)
        return false;
    *byte        = (uint8_t)reader->rest.at[0];
    reader->rest = str_from(reader->rest, 1);
    return true;
}

static bool take_varint(struct reader *reader, uint64_t *value)
{
    uint8_t byte;

    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!take_byte(reader, &byte))
            return false;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* A number of things that take a byte each at least. */
static bool take_count(struct reader *reader, uint64_t *count)
{
    return take_varint(reader, count) && *count <= reader->rest.len;
}

static bool push_whole(struct reader *reader)
{
    uint64_t zigzag;

    if (!take_varint(reader, &zigzag))
        return false;
    lua_pushnumber(reader->L, (double)(int64_t)(zigzag >> 1 ^ (zigzag & 1 ? UINT64_MAX : 0)));
    return true;
}

static bool push_number(struct reader *reader)
{
    double number;

    if (reader->rest.len < sizeof(number))
        return false;
    memcpy(&number, reader->rest.at, sizeof(number));
    if (isnan(number))
        number = (double)NAN; /* any other bits may be a pointer in LuaJIT's eyes */
    reader->rest = str_from(reader->rest, sizeof(number));
    lua_pushnumber(reader->L, number);
    return true;
}

static bool push_string(struct reader *reader)
{
    uint64_t len;

    if (!take_count(reader, &len))
        return false;
    lua_pushlstring(reader->L, reader->rest.at, (size_t)len);
    reader->rest = str_from(reader->rest, (size_t)len);
    return true;
}

static bool push_value(struct reader *reader);

/* The table is on top. */
static bool read_items(struct reader *reader, uint64_t count)
{
    for (uint64_t i = 1; i <= count; i++) {
        if (!push_value(reader))
            return false;
        lua_rawseti(reader->L, -2, (int)i);
    }
    return true;
}

static bool is_key(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
    case LUA_TSTRING: return true;
    case LUA_TNUMBER: return !isnan(lua_tonumber(L, index));
    default: return false;
    }
}

static bool read_pairs(struct reader *reader, uint64_t count)
{
    while (count-- > 0) {
        if (!push_value(reader))
            return false;
        if (!is_key(reader->L, -1) || !push_value(reader))
            return false;
        lua_rawset(reader->L, -3);
    }
    return true;
}

/* Room is made at once, but no more than MADE_AT_ONCE: what bytes promise they need not hold. */
static void new_table(lua_State *L, uint64_t items)
{
    enum { MADE_AT_ONCE = 4096 };

    lua_createtable(L, items < MADE_AT_ONCE ? (int)items : MADE_AT_ONCE, 0);
}

static bool push_table(struct reader *reader)
{
    uint64_t items, pairs;
    uint8_t  mark;

    if (reader->depth == MARSHAL_DEPTH_MAX || !take_byte(reader, &mark) ||
        mark > MARSHAL_MARK_MAX || !take_count(reader, &items) || items > INT32_MAX)
        return false;
    luaL_checkstack(reader->L, 4, NULL);
    reader->depth++;
    new_table(reader->L, items);
    if (!read_items(reader, items) || !take_count(reader, &pairs) || !read_pairs(reader, pairs))
        return false;
    reader->depth--;
    if (mark != 0 && reader->marks)
        reader->marks->write(reader->L, mark);
    return true;
}

/* False: what was pushed so far is left to marshal_push(). */
static bool push_value(struct reader *reader)
{
    uint8_t tag;

    if (!take_byte(reader, &tag))
        return false;
    switch (tag) {
    case TAG_NULL: lua_pushlightuserdata(reader->L, NULL); return true;
    case TAG_FALSE:
    case TAG_TRUE: lua_pushboolean(reader->L, tag == TAG_TRUE); return true;
    case TAG_WHOLE: return push_whole(reader);
    case TAG_NUMBER: return push_number(reader);
    case TAG_STRING: return push_string(reader);
    case TAG_TABLE: return push_table(reader);
    default: return false;
    }
}

bool marshal_push(lua_State *L, const struct marshal_marks *marks, struct str bytes)
{
    struct reader reader = { .L = L, .marks = marks, .rest = bytes };
    int           top    = lua_gettop(L);
    uint8_t       format;

    luaL_checkstack(L, 4, NULL);
    if (take_byte(&reader, &format) && format == FORMAT && push_value(&reader) &&
        reader.rest.len == 0)
        return true;
    lua_settop(L, top);
    return false;
}
