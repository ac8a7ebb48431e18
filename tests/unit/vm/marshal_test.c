#include "vm/marshal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "base/buf.h"
#include "support/check.h"

static lua_State *L;
static struct buf bytes;

static void open_all(void)
{
    if (L)
        lua_close(L);
    L = luaL_newstate();
    luaL_openlibs(L);
    buf_fini(&bytes);
    buf_init(&bytes, 1 << 20);
}

/* The value of CODE as bytes; the reason if it cannot be. */
static const char *add(const char *code)
{
    const char *fault;

    lua_settop(L, 0);
    CHECK(luaL_dostring(L, code) == 0);
    buf_clear(&bytes);
    fault = marshal_add(L, -1, NULL, &bytes);
    CHECK_INT(lua_gettop(L), 1);
    return fault;
}

/* Whether the value of CODE comes back equal, by a function that compares. */
static bool survives(const char *code)
{
    CHECK(add(code) == NULL);
    CHECK(!bytes.failed);
    CHECK(marshal_push(L, NULL, buf_str(&bytes)));
    CHECK_INT(lua_gettop(L), 2);
    lua_setglobal(L, "got");
    lua_setglobal(L, "want");
    CHECK(luaL_dostring(L,
                        "local function same(a, b)\n"
                        "  if type(a) ~= 'table' or type(b) ~= 'table' then\n"
                        "    return a == b and type(a) == type(b) or a ~= a and b ~= b\n"
                        "  end\n"
                        "  for k, v in pairs(a) do if not same(v, b[k]) then return false end end\n"
                        "  for k in pairs(b) do if a[k] == nil then return false end end\n"
                        "  return true\n"
                        "end\n"
                        "return same(got, want)") == 0);
    return lua_toboolean(L, -1);
}

TEST(values_come_back_as_they_were)
{
    open_all();
    CHECK(survives("return true"));
    CHECK(survives("return false"));
    CHECK(survives("return 0"));
    CHECK(survives("return -1"));
    CHECK(survives("return 2^53"));
    CHECK(survives("return -2^53"));
    CHECK(survives("return 1e300"));
    CHECK(survives("return 0.1"));
    CHECK(survives("return 1/0"));
    CHECK(survives("return 0/0"));
    CHECK(survives("return ''"));
    CHECK(survives("return 'a\\0b\\255'"));
    CHECK(survives("return ('x'):rep(100000)"));
    CHECK(survives("return {}"));
    CHECK(survives("return { 1, 2, { 'three', { four = 4 } } }"));
    CHECK(survives("return { a = 1, [true] = 2, [false] = 3, [1.5] = 4, [-1] = 5, [100] = 6 }"));
    CHECK(survives("return { 1, nil, 3, nil, nil, 6 }"));
    CHECK(survives("return { [1] = 1, x = { [''] = '' } }"));
}

TEST(minus_zero_keeps_its_sign)
{
    open_all();
    CHECK(add("return -0.0") == NULL);
    CHECK(marshal_push(L, NULL, buf_str(&bytes)));
    CHECK(1 / lua_tonumber(L, -1) < 0);
}

TEST(null_comes_back_as_null)
{
    open_all();
    lua_pushlightuserdata(L, NULL);
    buf_clear(&bytes);
    CHECK(marshal_add(L, -1, NULL, &bytes) == NULL);
    CHECK(marshal_push(L, NULL, buf_str(&bytes)));
    CHECK(lua_islightuserdata(L, -1) && lua_touserdata(L, -1) == NULL);
}

TEST(equal_tables_give_equal_bytes_however_they_were_made)
{
    struct buf first;

    open_all();
    CHECK(add("return { 1, 2, b = { x = 1, y = 2 }, a = true, [true] = 'z', [7.5] = 0 }") == NULL);
    buf_init(&first, 1 << 20);
    buf_add_str(&first, buf_str(&bytes));
    CHECK(add("local t = {}\n"
              "for i = 1, 100 do t['k' .. i] = i end\n"
              "for i = 1, 100 do t['k' .. i] = nil end\n"
              "t[7.5], t[true], t.a = 0, 'z', true\n"
              "t.b = {} t.b.y = 2 t.b.x = 1\n"
              "t[2] = 2 t[1] = 1\n"
              "return t") == NULL);
    CHECK_MEM(bytes.at, bytes.len, first.at, first.len);
    buf_fini(&first);
}

TEST(what_cannot_be_shared_is_told)
{
    open_all();
    CHECK_STR(add("return print"), "a function cannot be shared");
    CHECK_STR(add("return { a = { print } }"), "a function cannot be shared");
    CHECK_STR(add("return coroutine.create(print)"), "a coroutine cannot be shared");
    CHECK_STR(add("return io.stdout"), "a userdata cannot be shared");
    CHECK_STR(add("return nil"), "nil cannot be shared");
    CHECK(strstr(add("return { [{}] = 1 }"), "key") != NULL);
    CHECK(strstr(add("return require 'ffi'.new('int64_t', 5)"), "cdata") != NULL);
}

TEST(a_table_that_contains_itself_is_refused)
{
    open_all();
    CHECK(strstr(add("local t = {} t.t = t return t"), "contains itself") != NULL);
    CHECK(strstr(add("local t = {} t[1] = { { t } } return t"), "contains itself") != NULL);
    CHECK(add("local t = {} return { t, t }") == NULL);
}

TEST(depth_is_bounded)
{
    open_all();
    CHECK(survives("local t = {} for i = 1, 63 do t = { t } end return t"));
    CHECK(strstr(add("local t = {} for i = 1, 64 do t = { t } end return t"), "64 levels") != NULL);
}

TEST(what_does_not_fit_says_so_and_takes_no_more_memory)
{
    open_all();
    CHECK(add("local t = {} for i = 1, 100 do t[i] = ('x'):rep(20000) end return t") == NULL);
    CHECK(bytes.failed);
    CHECK(bytes.len <= 1 << 20);
    CHECK(add("local t = {} for i = 1, 100 do t['k' .. i] = ('x'):rep(20000) end return t") ==
          NULL);
    CHECK(bytes.failed);
}

TEST(bytes_that_were_cut_or_changed_are_refused_and_nothing_is_pushed)
{
    open_all();
    CHECK(add("return { 1, 'two', { three = 3.5 }, true }") == NULL);
    for (size_t len = 0; len < bytes.len; len++) {
        lua_settop(L, 0);
        CHECK(!marshal_push(L, NULL, str_make(bytes.at, len)));
        CHECK_INT(lua_gettop(L), 0);
    }
    buf_add_byte(&bytes, 0);
    CHECK(!marshal_push(L, NULL, buf_str(&bytes)));
    CHECK(!marshal_push(L, NULL, STR("plain text")));
    CHECK(!marshal_push(L, NULL, STR("\xC1\x06\x00\xFF\xFF\xFF\xFF\x0F")));
    CHECK(!marshal_push(L, NULL, STR("\xC1\x06\x00\x00\x01\x00\x02"))); /* a null as key */
}

static int marks;

static int read_mark(lua_State *state)
{
    lua_rawgeti(state, -1, 1);
    marks = (int)lua_tointeger(state, -1);
    lua_pop(state, 1);
    return marks;
}

static void write_mark(lua_State *state, int mark)
{
    lua_pushinteger(state, mark);
    lua_setfield(state, -2, "mark");
}

TEST(a_mark_goes_with_its_table)
{
    static const struct marshal_marks MARKS = { read_mark, write_mark };

    open_all();
    CHECK(luaL_dostring(L, "return { setmetatable({}, { 5 }) }") == 0);
    buf_clear(&bytes);
    CHECK(marshal_add(L, -1, &MARKS, &bytes) == NULL);
    CHECK(marshal_push(L, &MARKS, buf_str(&bytes)));
    lua_rawgeti(L, -1, 1);
    lua_getfield(L, -1, "mark");
    CHECK_INT(lua_tointeger(L, -1), 5);
    lua_pop(L, 1);
    CHECK(marshal_push(L, NULL, buf_str(&bytes)));
}

int main(void)
{
    int status = check_run();

    lua_close(L);
    buf_fini(&bytes);
    return status;
}
