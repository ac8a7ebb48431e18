#include "bind/llog_value.h"

#include <math.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/number.h"
#include "base/text.h"
#include "bind/lerror.h"

static const struct str MASK = STR_INIT("\"[masked]\"");

bool llog_value_is_secret(struct str name)
{
    static const struct str secrets[] = { STR_INIT("password"), STR_INIT("token"),
                                          STR_INIT("secret"), STR_INIT("authorization"),
                                          STR_INIT("cookie") };

    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        size_t before = name.len - secrets[i].len;

        if (name.len < secrets[i].len || !str_is_nocase(str_from(name, before), secrets[i]))
            continue;
        if (before == 0 || name.at[before - 1] == '_' || name.at[before - 1] == '-')
            return true;
    }
    return false;
}

static struct str string_at(lua_State *L, int index)
{
    size_t      len;
    const char *at = lua_tolstring(L, index, &len); /* a string already: nothing is converted */

    return str_make(at, len);
}

/* Its address is the registry's key of the metatable of error objects. */
static const char ERROR_KEY = 0;

void llog_value_prepare(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&ERROR_KEY);
    luaL_newmetatable(L, LERROR_METATABLE);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

void llog_value_field(lua_State *L, int index, struct str name)
{
    lua_pushnil(L);
    while (lua_next(L, index)) {
        if (lua_type(L, -2) == LUA_TSTRING && str_is(string_at(L, -2), name)) {
            lua_remove(L, -2);
            return;
        }
        lua_pop(L, 1);
    }
    lua_pushnil(L);
}

/* --- keys in byte order ------------------------------------------------------------------------- */

struct key {
    struct str text;
    int        index; /* on the stack */
};

static int compare_keys(const void *a, const void *b)
{
    struct str x = ((const struct key *)a)->text, y = ((const struct key *)b)->text;
    int        order = memcmp(x.at, y.at, x.len < y.len ? x.len : y.len);

    return order ? order : (x.len > y.len) - (x.len < y.len);
}

/* Reorders the COUNT strings on top of the stack, for which there is room once more. */
static void sort_strings(lua_State *L, int count)
{
    struct key keys[LLOG_KEYS_MAX];
    int        first = lua_gettop(L) - count + 1;

    for (int i = 0; i < count; i++)
        keys[i] = (struct key){ string_at(L, first + i), first + i };
    qsort(keys, (size_t)count, sizeof(*keys), compare_keys);
    for (int i = 0; i < count; i++)
        lua_pushvalue(L, keys[i].index);
    for (int i = count - 1; i >= 0; i--)
        lua_replace(L, first + i);
}

int llog_value_keys(lua_State *L, int index, int *left_out)
{
    int count = 0, base = lua_gettop(L);

    *left_out = 0;
    if (!lua_checkstack(L, 2 * LLOG_KEYS_MAX + 4))
        return 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && count < LLOG_KEYS_MAX) {
            lua_pushvalue(L, -1);
            lua_insert(L, base + ++count);
        } else {
            ++*left_out;
        }
    }
    sort_strings(L, count);
    return count;
}

/* --- values --------------------------------------------------------------------------------------- */

static void add_value(struct buf *out, lua_State *L, int index, int depth);

static void add_number(struct buf *out, double value)
{
    char text[NUMBER_TEXT_MAX];

    if (isfinite(value))
        buf_add(out, text, number_format(text, value));
    else
        buf_add_str(out, isnan(value) ? STR("\"nan\"")
                         : value > 0  ? STR("\"inf\"")
                                      : STR("\"-inf\""));
}

static void add_array(struct buf *out, lua_State *L, int index, int len, int depth)
{
    buf_add_byte(out, '[');
    for (int i = 1; i <= len && i <= LLOG_ITEMS_MAX && !out->failed; i++) {
        if (i > 1)
            buf_add_byte(out, ',');
        lua_rawgeti(L, index, i);
        add_value(out, L, lua_gettop(L), depth + 1);
        lua_pop(L, 1);
    }
    if (len > LLOG_ITEMS_MAX)
        buf_printf(out, ",\"... %d more\"", len - LLOG_ITEMS_MAX);
    buf_add_byte(out, ']');
}

static void add_member(struct buf *out, lua_State *L, int index, int key_index, int depth)
{
    struct str key = string_at(L, key_index);

    text_json(out, key);
    buf_add_byte(out, ':');
    if (llog_value_is_secret(key)) {
        buf_add_str(out, MASK);
        return;
    }
    lua_pushvalue(L, key_index);
    lua_rawget(L, index);
    add_value(out, L, lua_gettop(L), depth + 1);
    lua_pop(L, 1);
}

static void add_object(struct buf *out, lua_State *L, int index, int depth)
{
    int left_out;
    int count = llog_value_keys(L, index, &left_out);
    int first = lua_gettop(L) - count + 1;

    buf_add_byte(out, '{');
    for (int i = 0; i < count && !out->failed; i++) {
        if (i)
            buf_add_byte(out, ',');
        add_member(out, L, index, first + i, depth);
    }
    if (left_out)
        buf_printf(out, "%s\"...\":\"%d more\"", count ? "," : "", left_out);
    buf_add_byte(out, '}');
    lua_pop(L, count);
}

/* Not by luaL_getmetatable(): it makes a string, which may collect garbage and raise. */
static bool is_error_object(lua_State *L, int index)
{
    bool is;

    if (!lua_getmetatable(L, index))
        return false;
    lua_pushlightuserdata(L, (void *)&ERROR_KEY);
    lua_rawget(L, LUA_REGISTRYINDEX);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

/* pino's "err" has type, message and stack; ours code, status and cause besides. */
static void add_error(struct buf *out, lua_State *L, int index, int depth)
{
    static const struct {
        struct str  field;
        const char *as;
    } members[] = { { STR_INIT("message"), "message" },
                    { STR_INIT("code"), "code" },
                    { STR_INIT("status"), "status" },
                    { STR_INIT("trace"), "stack" },
                    { STR_INIT("cause"), "cause" } };

    buf_add_str(out, STR("{\"type\":\"" LERROR_METATABLE "\""));
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        llog_value_field(L, index, members[i].field);
        if (!lua_isnil(L, -1)) {
            buf_printf(out, ",\"%s\":", members[i].as);
            add_value(out, L, lua_gettop(L), depth + 1);
        }
        lua_pop(L, 1);
    }
    buf_add_byte(out, '}');
}

static void add_table(struct buf *out, lua_State *L, int index, int depth)
{
    int len = (int)lua_objlen(L, index);

    if (depth >= LLOG_DEPTH_MAX || !lua_checkstack(L, 8))
        buf_add_str(out, STR("\"{...}\""));
    else if (is_error_object(L, index))
        add_error(out, L, index, depth);
    else if (len > 0)
        add_array(out, L, index, len, depth);
    else
        add_object(out, L, index, depth);
}

static void add_value(struct buf *out, lua_State *L, int index, int depth)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL: buf_add_str(out, STR("null")); break;
    case LUA_TBOOLEAN:
        buf_add_str(out, lua_toboolean(L, index) ? STR("true") : STR("false"));
        break;
    case LUA_TNUMBER: add_number(out, lua_tonumber(L, index)); break;
    case LUA_TSTRING: text_json(out, string_at(L, index)); break;
    case LUA_TTABLE: add_table(out, L, index, depth); break;
    case LUA_TLIGHTUSERDATA:
        buf_add_str(out, lua_touserdata(L, index) ? STR("\"userdata\"") : STR("null"));
        break;
    default: buf_printf(out, "\"%s\"", luaL_typename(L, index));
    }
}

void llog_value(struct buf *out, lua_State *L, int index)
{
    add_value(out, L, index, 0);
}
