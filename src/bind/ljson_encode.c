/* Lua values to JSON: straight from the stack into a buffer.
 *
 * No Lua runs while a table is walked, so spans of its keys stay good and nothing needs to be
 * copied or anchored. The members of an object are gathered, sorted and then written: up to
 * STACKED_MAX wait on the Lua stack, of more only the keys are kept. */
#include "bind/ljson_encode.h"

#include <assert.h>
#include <endian.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/number.h"
#include "bind/ljson_table.h"
#include "bind/lstr.h"

enum {
    LUA_TCDATA = 10, /* LuaJIT's, in no header of its */

    STACKED_MAX     = 16, /* members of one object whose values lie on the Lua stack: few, for it
                           * is a request's coroutine that would grow */
    MEMBERS_AT_HAND = 64, /* without malloc */
    HOLES_FACTOR    = 4,  /* a marked array may be this many times longer than it has items */
    INDENT          = 2,
};

/* One key of an object. */
struct member {
    uint64_t   front; /* the key's first eight bytes: orders nearly all */
    struct str key;
    unsigned   rank; /* place in the object's `order`; UINT_MAX: behind those, by bytes */
    int        slot; /* of the value on the stack; 0: look it up */
    bool       is_number;
    double     number; /* the key itself */
};

/* A table that is being written, and where in it we are. */
struct level {
    const void *table;
    struct str  key; /* at NULL: INDEX */
    double      index;
};

struct encoder {
    lua_State  *L;
    struct buf *out;
    bool        pretty;
    unsigned    depth;

    struct member *members; /* of all levels; at_hand or malloc'ed */
    unsigned       member_count, member_room;

    struct level  levels[LJSON_DEPTH_MAX];
    struct member at_hand[MEMBERS_AT_HAND];
};

static enum ljson_code encode_value(struct encoder *e, int index);

/* --- misuse ---------------------------------------------------------------------------------- */

static bool is_name(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char byte = key.at[i];

        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') && byte != '_' &&
            !(i && byte >= '0' && byte <= '9'))
            return false;
    }
    return key.len > 0;
}

/* "items[3].price", "[\"a b\"]": as Lua would write it. */
static void add_path(struct buf *path, const struct encoder *e)
{
    for (unsigned i = 0; i < e->depth; i++) {
        const struct level *level = &e->levels[i];

        if (level->key.at && is_name(level->key)) {
            buf_printf(path, "%s%.*s", i ? "." : "", STR_ARG(level->key));
        } else if (level->key.at) {
            buf_add_byte(path, '[');
            json_string(path, level->key);
            buf_add_byte(path, ']');
        } else {
            buf_printf(path, "[%.14g]", level->index);
        }
    }
}

/* Pushes "PATH WHAT". */
static enum ljson_code misuse(struct encoder *e, const char *what)
{
    struct buf text;

    buf_init(&text, 1024);
    if (e->depth)
        add_path(&text, e);
    else
        buf_add_str(&text, STR("the value"));
    if (text.failed) { /* longer than a person would read */
        buf_clear(&text);
        buf_add_str(&text, STR("a value deep inside"));
    }
    buf_printf(&text, " %s", what);
    lua_pushlstring(e->L, text.at, text.len);
    buf_fini(&text);
    return LJSON_MISUSE;
}

/* --- layout ---------------------------------------------------------------------------------- */

static void new_line(struct encoder *e)
{
    char  *to;
    size_t blanks = (size_t)e->depth * INDENT;

    if (!e->pretty)
        return;
    to = buf_reserve(e->out, 1 + blanks);
    if (!to)
        return;
    *to = '\n';
    memset(to + 1, ' ', blanks);
    e->out->len += 1 + blanks;
}

static void begin_member(struct encoder *e, bool is_first)
{
    if (!is_first)
        buf_add_byte(e->out, ',');
    new_line(e);
}

/* --- levels ---------------------------------------------------------------------------------- */

/* Goes into the table at INDEX. */
static enum ljson_code enter(struct encoder *e, int index, char bracket)
{
    const void *table = lua_topointer(e->L, index);

    for (unsigned i = 0; i < e->depth; i++)
        if (e->levels[i].table == table)
            return misuse(e, "is a table that contains itself");
    e->levels[e->depth++].table = table;
    buf_add_byte(e->out, bracket);
    return LJSON_OK;
}

static void leave(struct encoder *e, char bracket)
{
    e->depth--;
    new_line(e);
    buf_add_byte(e->out, bracket);
}

static void at_index(struct encoder *e, double index)
{
    struct level *level = &e->levels[e->depth - 1];

    level->key   = STR_NONE;
    level->index = index;
}

static void at_key(struct encoder *e, struct str key)
{
    e->levels[e->depth - 1].key = key;
}

/* --- arrays ---------------------------------------------------------------------------------- */

static enum ljson_code encode_item(struct encoder *e, unsigned n, int index)
{
    begin_member(e, n == 1);
    at_index(e, n);
    return encode_value(e, index);
}

/* Items 1..COUNT of the table at INDEX; what is missing is null. */
static enum ljson_code encode_items(struct encoder *e, int index, unsigned count)
{
    enum ljson_code code = enter(e, index, '[');

    for (unsigned n = 1; code == LJSON_OK && n <= count; n++) {
        lua_rawgeti(e->L, index, (int)n);
        if (lua_isnil(e->L, -1)) {
            begin_member(e, n == 1);
            buf_add_str(e->out, STR("null"));
        } else {
            code = encode_item(e, n, lua_gettop(e->L));
        }
        if (code == LJSON_OK)
            lua_pop(e->L, 1);
    }
    if (code == LJSON_OK)
        leave(e, ']');
    return code;
}

static bool is_key(lua_State *L, double n)
{
    return lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == n;
}

/* An array in the order in which lua_next() finds it, which is that of its keys for all that were
 * built from 1 on. The first pair is on the stack. *IS_ARRAY false: a key came that is not the next
 * index; the stack is as before the first pair and nothing was written. */
static enum ljson_code encode_in_order(struct encoder *e, int index, bool *is_array)
{
    size_t          start = e->out->len;
    enum ljson_code code  = enter(e, index, '[');

    for (unsigned n = 1; code == LJSON_OK; n++) {
        *is_array = is_key(e->L, n);
        if (!*is_array) {
            lua_pop(e->L, 2);
            e->out->len = start;
            e->depth--;
            return LJSON_OK;
        }
        code = encode_item(e, n, lua_gettop(e->L));
        if (code != LJSON_OK)
            return code;
        lua_pop(e->L, 1);
        if (!lua_next(e->L, index))
            break;
    }
    if (code == LJSON_OK)
        leave(e, ']');
    return code;
}

/* --- members --------------------------------------------------------------------------------- */

static uint64_t big_endian_32(const char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return be32toh(word);
}

/* The first eight bytes, zeros behind a shorter key's end; as a number they compare as bytes do.
 * Put together in a register: a copy of varying length that is then read as a word stalls. */
static uint64_t front_of(struct str key)
{
    uint64_t front = 0;

    if (key.len >= 8)
        return big_endian_32(key.at) << 32 | big_endian_32(key.at + 4);
    if (key.len >= 4)
        return big_endian_32(key.at) << 32 | big_endian_32(key.at + key.len - 4)
                                                 << (64 - 8 * key.len);
    for (size_t i = 0; i < key.len; i++)
        front |= (uint64_t)(unsigned char)key.at[i] << (56 - 8 * i);
    return front;
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    size_t               len = a->key.len < b->key.len ? a->key.len : b->key.len;
    int                  order;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->front != b->front)
        return a->front < b->front ? -1 : 1;
    order = memcmp(a->key.at, b->key.at, len);
    return order ? order : (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

static void sort_members(struct member *members, unsigned count)
{
    if (count > 16) {
        qsort(members, count, sizeof(*members), compare_members);
        return;
    }
    for (unsigned i = 1; i < count; i++) {
        struct member member = members[i];
        unsigned      to     = i;

        for (; to > 0 && compare_members(&member, &members[to - 1]) < 0; to--)
            members[to] = members[to - 1];
        members[to] = member;
    }
}

static bool grow_members(struct encoder *e)
{
    unsigned       room = 2 * e->member_room;
    struct member *to   = e->members == e->at_hand ? NULL : e->members;

    to = realloc(to, room * sizeof(*to));
    if (!to)
        return false;
    if (e->members == e->at_hand)
        memcpy(to, e->at_hand, sizeof(e->at_hand));
    e->members     = to;
    e->member_room = room;
    return true;
}

static struct member *add_member(struct encoder *e)
{
    if (e->member_count == e->member_room && !grow_members(e))
        return NULL;
    return &e->members[e->member_count++];
}

/* --- objects --------------------------------------------------------------------------------- */

/* What is known of an object while it is gathered. */
struct gather {
    int      index;      /* of the table */
    int      base;       /* stack top before */
    int      anchors;    /* 0, or where the texts of number keys are kept */
    unsigned first;      /* of its members */
    bool     stacked;    /* values lie on the stack */
    bool     may_number; /* it is marked: numbers become texts */
};

/* Below all that is stacked. */
static void add_anchors(struct encoder *e, struct gather *g)
{
    lua_newtable(e->L);
    g->anchors = g->base + 1;
    lua_insert(e->L, g->anchors);
    for (unsigned i = g->first; i < e->member_count; i++)
        if (e->members[i].slot)
            e->members[i].slot++;
}

/* The key is a number; its text is kept where no collection finds it. */
static enum ljson_code gather_number(struct encoder *e, struct gather *g, struct member *member)
{
    lua_State *L = e->L;
    char       text[NUMBER_TEXT_MAX];

    member->is_number = true;
    member->number    = lua_tonumber(L, -2);
    if (!g->may_number)
        return misuse(e, "has keys of an array and of an object");
    if (!isfinite(member->number))
        return misuse(e, "has a key that is infinite");
    if (!g->anchors)
        add_anchors(e, g);
    lua_pushlstring(L, text, number_format(text, member->number));
    member->key = lstr_at(L, -1);
    lua_pushvalue(L, -1);
    lua_rawset(L, g->anchors);
    return LJSON_OK;
}

static enum ljson_code gather_key(struct encoder *e, struct gather *g, struct member *member)
{
    lua_State      *L    = e->L;
    enum ljson_code code = LJSON_OK;

    *member = (struct member){ .rank = UINT_MAX };
    switch (lua_type(L, -2)) {
    case LUA_TSTRING: member->key = lstr_at(L, -2); break;
    case LUA_TNUMBER: code = gather_number(e, g, member); break;
    default:
        lua_pushfstring(L, "has a key that is a %s", luaL_typename(L, -2));
        return misuse(e, lua_tostring(L, -1));
    }
    if (code == LJSON_OK)
        member->front = front_of(member->key);
    return code;
}

/* The pair on top of the stack: the key stays there for lua_next(), the value goes below it or
 * away. */
static void keep_value(lua_State *L, const struct gather *g, struct member *member)
{
    if (!g->stacked) {
        lua_pop(L, 1);
        return;
    }
    lua_insert(L, -2);
    member->slot = lua_gettop(L) - 1;
}

/* From now on values are looked up. Drops those on the stack; the key stays on top. */
static void unstack(struct encoder *e, struct gather *g)
{
    int keep = g->anchors ? g->anchors : g->base;

    lua_replace(e->L, keep + 1);
    lua_settop(e->L, keep + 1);
    for (unsigned i = g->first; i < e->member_count; i++)
        e->members[i].slot = 0;
    g->stacked = false;
}

/* The first pair is on the stack. */
static enum ljson_code gather_members(struct encoder *e, struct gather *g)
{
    do {
        struct member  *member = add_member(e);
        enum ljson_code code   = member ? gather_key(e, g, member) : LJSON_TOO_LARGE;

        if (code != LJSON_OK)
            return code;
        keep_value(e->L, g, member);
        if (g->stacked && e->member_count - g->first == STACKED_MAX)
            unstack(e, g);
    } while (lua_next(e->L, g->index));
    return LJSON_OK;
}

/* Gives the members that the array of names at ORDER has their ranks. */
static void rank_members(struct encoder *e, const struct gather *g, int order)
{
    lua_State *L     = e->L;
    unsigned   count = (unsigned)lua_objlen(L, order);

    for (unsigned rank = 0; rank < count; rank++) {
        struct str name = STR_NONE;

        lua_rawgeti(L, order, (int)rank + 1);
        if (lua_type(L, -1) == LUA_TSTRING)
            name = lstr_at(L, -1);
        for (unsigned i = g->first; name.at && i < e->member_count; i++)
            if (e->members[i].rank == UINT_MAX && str_is(e->members[i].key, name))
                e->members[i].rank = rank;
        lua_pop(L, 1);
    }
}

/* 7 and "7" are two keys in Lua and one in JSON. */
static enum ljson_code check_twins(struct encoder *e, const struct gather *g)
{
    for (unsigned i = g->first + 1; g->anchors && i < e->member_count; i++)
        if (str_is(e->members[i - 1].key, e->members[i].key))
            return misuse(e, "has a number and the same text as keys");
    return LJSON_OK;
}

static void push_member(lua_State *L, int index, const struct member *member)
{
    if (member->is_number)
        lua_pushnumber(L, member->number);
    else
        lstr_push(L, member->key);
    lua_rawget(L, index);
}

static enum ljson_code encode_members(struct encoder *e, const struct gather *g)
{
    enum ljson_code code = enter(e, g->index, '{');
    unsigned        end  = e->member_count;

    for (unsigned i = g->first; code == LJSON_OK && i < end; i++) {
        struct member member = e->members[i]; /* the array may move meanwhile */

        begin_member(e, i == g->first);
        at_key(e, member.key);
        json_string(e->out, member.key);
        buf_add(e->out, ": ", e->pretty ? 2 : 1);
        if (!member.slot)
            push_member(e->L, g->index, &member);
        code = encode_value(e, member.slot ? member.slot : lua_gettop(e->L));
        if (code == LJSON_OK && !member.slot)
            lua_pop(e->L, 1);
    }
    if (code == LJSON_OK)
        leave(e, '}');
    return code;
}

/* The first pair is on the stack. ORDER: index of an array of names, or 0. */
static enum ljson_code encode_object(struct encoder *e, int index, bool is_marked, int order)
{
    struct gather   g    = { .index      = index,
                             .base       = lua_gettop(e->L) - 2,
                             .first      = e->member_count,
                             .stacked    = true,
                             .may_number = is_marked };
    enum ljson_code code = gather_members(e, &g);

    if (code == LJSON_OK && order)
        rank_members(e, &g, order);
    if (code == LJSON_OK) {
        sort_members(&e->members[g.first], e->member_count - g.first);
        code = check_twins(e, &g);
    }
    if (code == LJSON_OK)
        code = encode_members(e, &g);
    if (code == LJSON_OK)
        lua_settop(e->L, g.base);
    e->member_count = g.first;
    return code;
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Its keys are not 1, 2, 3 ... in the order of lua_next(): a mixture, or an array that was not built
 * from the front. */
static enum ljson_code encode_scattered(struct encoder *e, int index, bool is_marked)
{
    struct ljson_shape shape = ljson_table_shape(e->L, index);

    if (shape.others)
        return misuse(e, is_marked ? "is marked as an array and has other keys"
                                   : "has keys of an array and of an object");
    if (shape.last == shape.count)
        return encode_items(e, index, shape.count);
    if (!is_marked)
        return misuse(e, "has numbers as keys that are not 1..n (json.object or json.array can "
                         "mark it)");
    if (shape.last > HOLES_FACTOR * shape.count)
        return misuse(e, "is marked as an array and has more holes than items");
    return encode_items(e, index, shape.last);
}

static enum ljson_code encode_array(struct encoder *e, int index, bool is_marked)
{
    bool            is_array = true;
    enum ljson_code code     = encode_in_order(e, index, &is_array);

    return is_array ? code : encode_scattered(e, index, is_marked);
}

static enum ljson_code encode_unmarked(struct encoder *e, int index)
{
    lua_pushnil(e->L);
    if (!lua_next(e->L, index)) {
        buf_add_str(e->out, STR("[]"));
        return LJSON_OK;
    }
    if (lua_type(e->L, -2) == LUA_TNUMBER)
        return encode_array(e, index, false);
    return encode_object(e, index, false, 0);
}

static enum ljson_code encode_marked_array(struct encoder *e, int index)
{
    lua_pushnil(e->L);
    if (!lua_next(e->L, index)) {
        buf_add_str(e->out, STR("[]"));
        return LJSON_OK;
    }
    return encode_array(e, index, true);
}

static enum ljson_code encode_marked_object(struct encoder *e, int index, int order)
{
    lua_pushnil(e->L);
    if (!lua_next(e->L, index)) {
        buf_add_str(e->out, STR("{}"));
        return LJSON_OK;
    }
    return encode_object(e, index, true, order);
}

/* The table's metatable is on top of the stack. */
static enum ljson_code encode_by_metatable(struct encoder *e, int index)
{
    int             base = lua_gettop(e->L) - 1;
    enum ljson_code code = LJSON_OK;

    switch (ljson_table_mark(e->L)) {
    case LJSON_MARK_NONE: code = encode_unmarked(e, index); break;
    case LJSON_MARK_CALLS: code = LJSON_CALLS; break;
    case LJSON_MARK_ARRAY: code = encode_marked_array(e, index); break;
    case LJSON_MARK_OBJECT: code = encode_marked_object(e, index, 0); break;
    case LJSON_MARK_ORDERED: code = encode_marked_object(e, index, lua_gettop(e->L)); break;
    }
    if (code == LJSON_OK)
        lua_settop(e->L, base);
    return code;
}

/* An empty table is a level, too: what is written can be read. */
static enum ljson_code encode_table(struct encoder *e, int index)
{
    if (e->depth == LJSON_DEPTH_MAX)
        return misuse(e, "is nested too deeply");
    if (!lua_checkstack(e->L, STACKED_MAX + 16))
        return misuse(e, "is nested too deeply");
    if (lua_getmetatable(e->L, index))
        return encode_by_metatable(e, index);
    return encode_unmarked(e, index);
}

/* --- values ---------------------------------------------------------------------------------- */

static enum ljson_code encode_number(struct encoder *e, double value)
{
    char *to;

    if (!isfinite(value))
        return misuse(e, value != value ? "is NaN" : "is infinite");
    to = buf_reserve(e->out, NUMBER_TEXT_MAX);
    if (to)
        e->out->len += number_format(to, value);
    return LJSON_OK;
}

static void encode_string(struct encoder *e, int index)
{
    struct str text;

    text = lstr_at(e->L, index);
    json_string(e->out, text);
}

/* "-12LL" or "12ULL", as tostring() writes 64-bit integers; digits and sign are JSON's. */
static bool cut_suffix(struct str *text)
{
    static const char *const DIGITS = "0123456789";
    size_t                   sign   = text->len && text->at[0] == '-';
    size_t                   digits;

    digits = text->len ? strspn(text->at + sign, DIGITS) : 0;
    if (digits == 0 || (!str_is(str_from(*text, sign + digits), STR("LL")) &&
                        !str_is(str_from(*text, sign + digits), STR("ULL"))))
        return false;
    text->len = sign + digits;
    return true;
}

static enum ljson_code encode_cdata(struct encoder *e, int index)
{
    struct str text = STR_NONE;

    if (luaL_getmetafield(e->L, index, "__tostring")) {
        lua_pushvalue(e->L, index);
        if (lua_pcall(e->L, 1, 1, 0) == 0 && lua_type(e->L, -1) == LUA_TSTRING)
            text = lstr_at(e->L, -1);
    }
    if (!text.at || !cut_suffix(&text))
        return misuse(e, "is cdata, and no 64-bit integer");
    buf_add_str(e->out, text);
    lua_pop(e->L, 1);
    return LJSON_OK;
}

static enum ljson_code encode_userdata(struct encoder *e, int index)
{
    if (luaL_getmetafield(e->L, index, "__tojson"))
        return LJSON_CALLS;
    return misuse(e, "is userdata, which has no JSON form");
}

static enum ljson_code encode_other(struct encoder *e, int index)
{
    if (lua_type(e->L, index) <= LUA_TNIL)
        return misuse(e, "is nil (JSON's null is srv.null)");
    lua_pushfstring(e->L, "is a %s, which has no JSON form", luaL_typename(e->L, index));
    return misuse(e, lua_tostring(e->L, -1));
}

/* INDEX is absolute. On LJSON_OK the stack is as it was. */
static enum ljson_code encode_value(struct encoder *e, int index)
{
    lua_State *L = e->L;

    switch (lua_type(L, index)) {
    case LUA_TSTRING: encode_string(e, index); return LJSON_OK;
    case LUA_TNUMBER: return encode_number(e, lua_tonumber(L, index));
    case LUA_TBOOLEAN:
        buf_add_str(e->out, lua_toboolean(L, index) ? STR("true") : STR("false"));
        return LJSON_OK;
    case LUA_TTABLE: return encode_table(e, index);
    case LUA_TLIGHTUSERDATA:
        if (!ljson_is_null(L, index))
            return misuse(e, "is light userdata, which has no JSON form");
        buf_add_str(e->out, STR("null"));
        return LJSON_OK;
    case LUA_TCDATA: return encode_cdata(e, index);
    case LUA_TUSERDATA: return encode_userdata(e, index);
    default: return encode_other(e, index);
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

/* Leaves the message alone on the stack, if there is one. */
static void unwind(lua_State *L, int top, enum ljson_code code)
{
    if (code == LJSON_MISUSE)
        lua_insert(L, ++top);
    lua_settop(L, top);
}

enum ljson_code ljson_encode(lua_State *L, int index, struct buf *out, unsigned flags)
{
    struct encoder  e; /* not cleared: levels and members are set before they are read */
    int             top   = lua_gettop(L);
    size_t          start = out->len;
    enum ljson_code code;

    e.L            = L;
    e.out          = out;
    e.pretty       = flags & LJSON_PRETTY;
    e.depth        = 0;
    e.members      = e.at_hand;
    e.member_count = 0;
    e.member_room  = MEMBERS_AT_HAND;
    assert(!out->failed);
    if (!lua_checkstack(L, 16))
        return LJSON_TOO_LARGE;
    code = encode_value(&e, index < 0 && index > LUA_REGISTRYINDEX ? top + index + 1 : index);
    if (e.members != e.at_hand)
        free(e.members);
    if (code == LJSON_OK && out->failed)
        code = LJSON_TOO_LARGE;
    if (code != LJSON_OK) {
        unwind(L, top, code);
        out->len    = start;
        out->failed = false;
    }
    return code;
}
