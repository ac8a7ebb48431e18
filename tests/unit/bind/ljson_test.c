#include "bind/ljson.h"

#include <stdlib.h>

#include <lauxlib.h>
#include <lualib.h>

#include "base/buf.h"
#include "support/check.h"

static lua_State *L;
static struct buf out;

/* --- helpers --------------------------------------------------------------------------------- */

/* Leaves the value of the Lua expression CODE on the stack, alone. */
static void push(const char *code)
{
    char chunk[4096];

    lua_settop(L, 0);
    snprintf(chunk, sizeof(chunk), "return %s", code);
    if (luaL_dostring(L, chunk) != 0) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        CHECK(!"the chunk runs");
    }
    lua_settop(L, 1);
}

static void run(const char *code)
{
    lua_settop(L, 0);
    if (luaL_dostring(L, code) != 0) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        CHECK(!"the chunk runs");
    }
}

static enum ljson_code encode_flags(const char *code, unsigned flags)
{
    enum ljson_code result;

    push(code);
    buf_clear(&out);
    result = ljson_encode(L, 1, &out, flags);
    CHECK_INT(lua_gettop(L), result == LJSON_MISUSE ? 2 : 1);
    return result;
}

static void check_encodes(const char *code, const char *want)
{
    enum ljson_code result = encode_flags(code, 0);

    if (result != LJSON_OK)
        fprintf(stderr, "%s: %s\n", code, lua_tostring(L, -1));
    CHECK_INT(result, LJSON_OK);
    CHECK_MEM(out.at, out.len, want, strlen(want));
}

static void check_misuse(const char *code, const char *want)
{
    CHECK_INT(encode_flags(code, 0), LJSON_MISUSE);
    CHECK_STR(lua_tostring(L, -1), want);
    CHECK_INT(out.len, 0);
}

static int decode(const char *text, size_t len)
{
    lua_settop(L, 0);
    return ljson_decode(L, str_make(text, len), NULL);
}

static void check_round(const char *text, const char *want)
{
    int count = decode(text, strlen(text));

    if (count != 1)
        fprintf(stderr, "%s: %s\n", text, (lua_getfield(L, 2, "message"), lua_tostring(L, -1)));
    CHECK_INT(count, 1);
    buf_clear(&out);
    CHECK_INT(ljson_encode(L, 1, &out, 0), LJSON_OK);
    CHECK_MEM(out.at, out.len, want, strlen(want));
}

static void check_same(const char *text)
{
    check_round(text, text);
}

static const char *error_field(const char *name)
{
    lua_settop(L, 2);
    lua_getfield(L, 2, name);
    return lua_tostring(L, -1);
}

static void check_fault(const char *text, const char *message)
{
    int count = decode(text, strlen(text));

    if (count != 2)
        fprintf(stderr, "accepted: %s\n", text);
    CHECK_INT(count, 2);
    CHECK(lua_isnil(L, 1));
    CHECK_STR(error_field("code"), "bad_json");
    CHECK_STR(error_field("message"), message);
}

/* --- encoding -------------------------------------------------------------------------------- */

TEST(plain_values_are_written)
{
    check_encodes("true", "true");
    check_encodes("false", "false");
    check_encodes("json.null", "null");
    check_encodes("0", "0");
    check_encodes("-1.5", "-1.5");
    check_encodes("0.1", "0.1");
    check_encodes("1e100", "1e+100");
    check_encodes("2^53", "9007199254740992");
    check_encodes("2^54", "1.8014398509481984e+16");
    check_encodes("''", "\"\"");
    check_encodes("'hello'", "\"hello\"");
}

TEST(strings_are_escaped_only_where_they_must)
{
    check_encodes("'a\"b\\\\c/d'", "\"a\\\"b\\\\c/d\"");
    check_encodes("'\\8\\t\\n\\12\\r\\0\\31\\127'", "\"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\"");
    check_encodes("'\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80'",
                  "\"\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80\"");
    check_encodes("'0123456789abcdef\\n0123456789abcdef'",
                  "\"0123456789abcdef\\n0123456789abcdef\"");
}

TEST(bytes_that_are_no_utf8_are_replaced)
{
    check_encodes("'a\\255b'", "\"a\xef\xbf\xbd"
                               "b\"");
    check_encodes("'\\195'", "\"\xef\xbf\xbd\"");
    check_encodes("'\\237\\160\\128'", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(keys_from_one_on_make_an_array)
{
    check_encodes("{ 1, 'a', true }", "[1,\"a\",true]");
    check_encodes("{ {}, { {} } }", "[[],[[]]]");
    check_encodes("(function() local t = {} for i = 3, 1, -1 do t[i] = i end return t end)()",
                  "[1,2,3]");
    check_encodes("(function() local t = {} for i = 40, 1, -1 do t[i] = 0 end return #t, t end)()",
                  "40");
    check_encodes("{ [2] = 'b', [1] = 'a' }", "[\"a\",\"b\"]");
}

TEST(other_keys_make_an_object_in_byte_order)
{
    check_encodes("{ b = 1, a = 2, c = 3 }", "{\"a\":2,\"b\":1,\"c\":3}");
    check_encodes("{ [''] = 0, a = 1, ab = 2, abc = 3, B = 4, ['\xc3\xa4'] = 5, _ = 6 }",
                  "{\"\":0,\"B\":4,\"_\":6,\"a\":1,\"ab\":2,\"abc\":3,\"\xc3\xa4\":5}");
    check_encodes(
        "{ longer_than_eight_b = 1, longer_than_eight_a = 2, longer_t = 3, ['longer_t\\0'] = 4 }",
        "{\"longer_t\":3,\"longer_t\\u0000\":4,\"longer_than_eight_a\":2,"
        "\"longer_than_eight_b\":1}");
    check_encodes("{ a = { c = 1, b = { e = 1, d = 2 } } }",
                  "{\"a\":{\"b\":{\"d\":2,\"e\":1},\"c\":1}}");
}

/* More members than wait on the stack, than lie at hand, and of both within each other. */
TEST(objects_of_every_size_are_sorted)
{
    static const unsigned SIZES[] = { 1, 2, 15, 16, 17, 18, 31, 63, 64, 65, 200, 5000 };

    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        char chunk[512];

        snprintf(chunk, sizeof(chunk),
                 "local n, parts = %u, {}\n"
                 "value, inner = {}, { z = { y = 1, x = 2 }, w = {} }\n"
                 "for i = 1, n do value[('k%%05d'):format(i * 7919 %% 10007)] = inner end\n"
                 "local keys = {} for k in pairs(value) do keys[#keys + 1] = k end\n"
                 "table.sort(keys)\n"
                 "for i, k in ipairs(keys) do\n"
                 "  parts[i] = ('%%q:{\"w\":[],\"z\":{\"x\":2,\"y\":1}}'):format(k) end\n"
                 "want = '{' .. table.concat(parts, ',') .. '}'",
                 SIZES[i]);
        run(chunk);
        push("want");
        lua_getglobal(L, "value");
        buf_clear(&out);
        CHECK_INT(ljson_encode(L, -1, &out, 0), LJSON_OK);
        CHECK_MEM(out.at, out.len, lua_tostring(L, 1), lua_objlen(L, 1));
    }
}

TEST(an_empty_table_is_an_array_unless_it_is_marked)
{
    check_encodes("{}", "[]");
    check_encodes("json.object({})", "{}");
    check_encodes("json.array({})", "[]");
    check_encodes("json.array(json.object({}))", "[]");
    check_encodes("{ a = {}, b = json.object({}) }", "{\"a\":[],\"b\":{}}");
    check_encodes("setmetatable({}, json.object_mark)", "{}");
    check_encodes("setmetatable({}, {})", "[]");
}

TEST(a_marked_array_may_have_holes)
{
    check_encodes("json.array({ 1, nil, 3 })", "[1,null,3]");
    check_encodes("json.array({ [3] = 'c' })", "[null,null,\"c\"]");
    check_misuse("{ a = json.array({ [5] = 1 }) }",
                 "a is marked as an array and has more holes than items");
    check_misuse("json.array({ 1, x = 2 })", "the value is marked as an array and has other keys");
    check_misuse("json.array({ x = 2 })", "the value is marked as an array and has other keys");
}

TEST(a_marked_object_makes_texts_of_numbers)
{
    check_encodes("json.object({ [10] = 'a', [9] = 'b', x = 'c' })",
                  "{\"10\":\"a\",\"9\":\"b\",\"x\":\"c\"}");
    check_encodes("json.object({ 'a', 'b' })", "{\"1\":\"a\",\"2\":\"b\"}");
    check_encodes("json.object({ [1.5] = {}, [-1] = json.object({ [2] = 1 }) })",
                  "{\"-1\":{\"2\":1},\"1.5\":[]}");
    check_encodes("(function() local t = {} for i = 1, 30 do t[i * 100] = i end "
                  "return #json.encode(json.object(t)) end)()",
                  "283");
    check_misuse("json.object({ [7] = 1, ['7'] = 2 })",
                 "the value has a number and the same text as keys");
    check_misuse("json.object({ [1/0] = 1 })", "the value has a key that is infinite");
}

TEST(an_order_comes_before_the_bytes)
{
    check_encodes("json.object({ a = 1, b = 2, c = 3, d = 4 }, { 'c', 'x', 'b' })",
                  "{\"c\":3,\"b\":2,\"a\":1,\"d\":4}");
    check_encodes("json.object({}, { 'c' })", "{}");
    check_encodes("{ json.object({ a = 1, b = json.object({ d = 1, c = 2 }, { 'd' }) }, { 'b' }) }",
                  "[{\"b\":{\"d\":1,\"c\":2},\"a\":1}]");
}

TEST(what_has_no_json_form_is_misuse_with_its_path)
{
    check_misuse("nil", "the value is nil (JSON's null is srv.null)");
    check_misuse("print", "the value is a function, which has no JSON form");
    check_misuse("{ a = { 1, { b = print } } }", "a[2].b is a function, which has no JSON form");
    check_misuse("{ a = 0/0 }", "a is NaN");
    check_misuse("{ 1, 1/0 }", "[2] is infinite");
    check_misuse("{ ['two words'] = { -1/0 } }", "[\"two words\"][1] is infinite");
    check_misuse("{ io.stdout }", "[1] is userdata, which has no JSON form");
    check_misuse("{ a = coroutine.create(print) }", "a is a thread, which has no JSON form");
    check_misuse("{ 1, 2, x = 3 }", "the value has keys of an array and of an object");
    check_misuse("{ x = 3, [1] = 1 }", "the value has keys of an array and of an object");
    check_misuse("{ x = 3, [0.5] = 1 }", "the value has keys of an array and of an object");
    check_misuse("{ a = { [true] = 1 } }", "a has a key that is a boolean");
    check_misuse("{ [0] = 1 }", "the value has keys of an array and of an object");
    check_misuse("{ 1, nil, 3 }", "the value has numbers as keys that are not 1..n (json.object or "
                                  "json.array can mark it)");
    check_misuse("{ [7] = 1 }", "the value has numbers as keys that are not 1..n (json.object or "
                                "json.array can mark it)");
}

TEST(circles_are_found_where_they_close)
{
    run("circle = { a = { b = {} } } circle.a.b.c = circle\n"
        "list = { 1, {} } list[2][1] = list[2]\n"
        "twice = {} twice.x = { 1 } twice.y = twice.x");
    check_misuse("circle", "a.b.c is a table that contains itself");
    check_misuse("list", "[2][1] is a table that contains itself");
    check_encodes("twice", "{\"x\":[1],\"y\":[1]}");
}

TEST(depth_has_a_bound)
{
    run("function nested(n) local t = 'end' for _ = 1, n do t = { t } end return t end\n"
        "function named(n) local t = 'end' for _ = 1, n do t = { x = t, y = 1 } end return t end");
    CHECK_INT(encode_flags("nested(256)", 0), LJSON_OK);
    CHECK_INT(out.len, 2 * 256 + 5);
    CHECK_INT(encode_flags("nested(257)", 0), LJSON_MISUSE);
    CHECK(strstr(lua_tostring(L, -1), "is nested too deeply") != NULL);
    CHECK_INT(encode_flags("named(256)", 0), LJSON_OK);
    CHECK_INT(encode_flags("named(257)", 0), LJSON_MISUSE);
}

TEST(integers_of_64_bits_are_written_as_digits)
{
    check_encodes("9223372036854775807LL", "9223372036854775807");
    check_encodes("{ -9223372036854775807LL - 1, 18446744073709551615ULL, 0LL }",
                  "[-9223372036854775808,18446744073709551615,0]");
    check_misuse("{ x = require('ffi').new('int[2]') }", "x is cdata, and no 64-bit integer");
    check_misuse("1i", "the value is cdata, and no 64-bit integer");
}

TEST(a_tojson_is_told_and_not_called)
{
    run("called = false\n"
        "class = { __tojson = function() called = true end }\n"
        "object = setmetatable({}, class)");
    CHECK_INT(encode_flags("object", 0), LJSON_CALLS);
    CHECK_INT(encode_flags("{ a = { 1, object } }", 0), LJSON_CALLS);
    CHECK_INT(out.len, 0);
    push("called");
    CHECK(!lua_toboolean(L, 1));
    check_encodes("json.encode({ object })", "false");
}

TEST(pretty_is_for_people)
{
    static const char WANT[] = "{\n"
                               "  \"a\": [\n"
                               "    1,\n"
                               "    {\n"
                               "      \"b\": true\n"
                               "    }\n"
                               "  ],\n"
                               "  \"e\": [],\n"
                               "  \"o\": {}\n"
                               "}";

    CHECK_INT(
        encode_flags("{ a = { 1, { b = true } }, e = {}, o = json.object({}) }", LJSON_PRETTY),
        LJSON_OK);
    CHECK_MEM(out.at, out.len, WANT, sizeof(WANT) - 1);
}

TEST(a_buffer_keeps_what_it_had)
{
    struct buf small;

    buf_init(&small, 64);
    buf_add_str(&small, STR("head:"));
    push("{ 1, 2 }");
    CHECK_INT(ljson_encode(L, 1, &small, 0), LJSON_OK);
    CHECK_MEM(small.at, small.len, "head:[1,2]", 10);
    push("{ 1, 2, ('x'):rep(64) }");
    CHECK_INT(ljson_encode(L, 1, &small, 0), LJSON_TOO_LARGE);
    CHECK_MEM(small.at, small.len, "head:[1,2]", 10);
    push("{ 1, print }");
    CHECK_INT(ljson_encode(L, 1, &small, 0), LJSON_MISUSE);
    CHECK_MEM(small.at, small.len, "head:[1,2]", 10);
    CHECK(!small.failed);
    buf_fini(&small);
}

/* --- decoding: what RFC 8259 allows ---------------------------------------------------------------- */

TEST(values_come_back_as_they_were)
{
    check_same("null");
    check_same("true");
    check_same("false");
    check_same("0");
    check_same("-0");
    check_same("123456789");
    check_same("-1.5");
    check_same("0.30000000000000004");
    check_same("5e-324");
    check_same("1.7976931348623157e+308");
    check_same("9007199254740992");
    check_same("-9007199254740992");
    check_same("\"\"");
    check_same("\"\xf0\x9f\x98\x80\"");
    check_same("[]");
    check_same("{}");
    check_same("[[],{},[{}],{\"\":[]}]");
    check_same("{\"a\":{\"b\":[1,2,{\"c\":null}]}}");
    check_round(" [ 1 , 2 ]\r\n\t", "[1,2]");
    check_round("{ \"b\" : 1 , \"a\" : 2 }", "{\"a\":2,\"b\":1}");
    check_round("1E2", "100");
    check_round("1.0", "1");
    check_round("123e-2", "1.23");
    check_round("1e-400", "0");
    check_round("-1e-400", "-0");
    check_round("0e1", "0");
    check_round("20e1", "200");
}

TEST(escapes_become_utf8)
{
    check_round("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    check_round("\"\\u0061\\u00e4\\u4e2d\\ud83d\\ude00\"",
                "\"a\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80\"");
    check_round("\"\\u0000\"", "\"\\u0000\"");
    check_round("\"\\uFFFF\\uDBFF\\uDFFF\"", "\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\"");
    check_round("{\"\\u0061\":1}", "{\"a\":1}");
    check_round("\"\\\\u0061\"", "\"\\\\u0061\"");
    check_same("\"\xe2\x80\xa8\xe2\x80\xa9\x7f\xef\xbf\xbe\"");
}

TEST(a_long_string_with_escapes_is_whole)
{
    char text[4002], want[4002];

    memset(text, 'x', sizeof(text));
    text[0] = text[sizeof(text) - 2] = '"';
    text[sizeof(text) - 1]           = '\0';
    memcpy(text + 2000, "\\u0041", 6);
    memcpy(want, text, 2000);
    want[2000] = 'A';
    strcpy(want + 2001, text + 2006);
    check_round(text, want);
}

TEST(integers_beyond_2_to_the_53_come_as_digits)
{
    check_round("9007199254740993", "\"9007199254740993\"");
    check_round("-9007199254740993", "\"-9007199254740993\"");
    check_round("[123456789012345678901234567890]", "[\"123456789012345678901234567890\"]");
    check_round("9007199254740993.0", "9007199254740992");
    check_round("1e16", "1e+16");
}

TEST(the_last_of_equal_keys_wins)
{
    check_round("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
    check_round("{\"a\":1,\"\\u0061\":2}", "{\"a\":2}");
    run("local t = {} for i = 1, 40 do t[i] = ('\"k%d\":%d'):format(i % 20, i) end\n"
        "local v = json.decode('{' .. table.concat(t, ',') .. '}')\n"
        "for i = 0, 19 do local want = i == 0 and 40 or i + 20 assert(v['k' .. i] == want) end");
}

TEST(a_byte_order_mark_is_skipped)
{
    check_round("\xef\xbb\xbf[1]", "[1]");
}

TEST(what_is_decoded_is_marked)
{
    run("local v = json.decode('{\"a\":[],\"o\":{}}')\n"
        "assert(json.is_object(v) and json.is_array(v.a) and json.is_object(v.o))\n"
        "assert(getmetatable(v) == json.object_mark and getmetatable(v.a) == json.array_mark)\n"
        "v.a, v.o = nil, nil\n"
        "assert(json.encode(v) == '{}')");
}

TEST(containers_of_every_size_are_whole)
{
    run("for _, n in ipairs { 0, 1, 15, 16, 17, 31, 32, 33, 1000 } do\n"
        "  local list, map = {}, {}\n"
        "  for i = 1, n do list[i] = i; map['k' .. i] = { i } end\n"
        "  local again = json.decode(json.encode(list))\n"
        "  assert(#again == n)\n"
        "  for i = 1, n do assert(again[i] == i) end\n"
        "  again = json.decode(json.encode(map))\n"
        "  local count = 0\n"
        "  for k, v in pairs(again) do count = count + 1; assert(map[k][1] == v[1]) end\n"
        "  assert(count == n)\n"
        "end");
}

/* --- decoding: what it refuses -------------------------------------------------------------------- */

TEST(faults_name_line_column_and_path)
{
    check_fault("", "line 1, column 1: the text ends where a value is expected");
    check_fault("  ", "line 1, column 3: the text ends where a value is expected");
    check_fault("[1,\n  2,\n  oops]", "line 3, column 3: expected a value at /2");
    check_fault("{\"a\":{\"b\":[0,{\"c\":nul}]}}",
                "line 1, column 19: an unknown word at /a/b/1/c");
    check_fault("{\"\xc3\xa4\":[1 2]}", "line 1, column 9: expected \",\" or \"]\" at /\xc3\xa4");
    check_fault("{\"a/b~\":[}", "line 1, column 10: expected a value at /a~1b~0/0");
    check_fault("{\"a\":1 \"b\":2}", "line 1, column 8: expected \",\" or \"}\"");
    check_fault("[1] x", "line 1, column 5: something behind the value");
    check_fault("{\"\":x}", "line 1, column 5: expected a value at /");
    decode("[\n[7,\n!]]", 9);
    CHECK_STR(error_field("line"), "3");
    CHECK_STR(error_field("column"), "1");
    CHECK_STR(error_field("path"), "/0/1");
    CHECK_STR(error_field("status"), "400");
}

TEST(a_long_path_is_cut_between_its_parts)
{
    run("local name = ('n'):rep(100)\n"
        "local text = ('{\"%s\":'):format(name):rep(5) .. '!'\n"
        "local v, err = json.decode(text)\n"
        "assert(v == nil and err.path == ('/' .. name):rep(2), err.path)");
}

TEST(malformed_texts_are_refused)
{
    static const char *const CASES[] = {
        /* structure */
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[,",
        "[,1]",
        "[1,]",
        "[1,,2]",
        "[1 2]",
        "[1:2]",
        "[}",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1,,}",
        "{a:1}",
        "{1:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{\"a\"::1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1}}",
        "[1]]",
        "[[1]",
        "{\"a\":{\"b\":1}",
        "1 2",
        "[] []",
        "{} x",
        "[1];",
        "/*x*/1",
        "1//x",
        "[1,//x\n2]",
        "#",
        "{null:1}",
        "{[]:1}",
        "\\",
        "*",
        "<1>",
        "[\x0c]",
        "[\xc2\xa0]",
        "\xe2\x81\xa0[]",
        "\x01",
        /* words */
        "tru",
        "truE",
        "True",
        "nul",
        "nulll",
        "NULL",
        "fals",
        "undefined",
        "NaN",
        "nan",
        "-NaN",
        "Infinity",
        "-Infinity",
        "inf",
        "truefalse",
        "[true false]",
        "t",
        "n",
        "f",
        /* numbers */
        "-",
        "+1",
        "01",
        "-01",
        "00",
        "-00",
        ".5",
        "-.5",
        "1.",
        "1.e1",
        "1e",
        "1E",
        "1e+",
        "1e-",
        "1.5e",
        "0x1",
        "0b1",
        "1_000",
        "1,5",
        "- 1",
        "--1",
        "1-1",
        "1e1.5",
        "0e",
        "1a",
        "1.2.3",
        "\xef\xbc\x91",
        "1e400",
        "-1e400",
        "[1e999999999999999]",
        "9.e+",
        "2.e3",
        "1eE2",
        "0.e1",
        /* strings */
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\a\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\U0041\"",
        "\"\\ 1\"",
        "\"\n\"",
        "\"\t\"",
        "\"\x1f\"",
        "'a'",
        "\"\\u0\"",
        "\"a\" b",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800x\"",
        "\"\\ud800\\n\"",
        "\"\\udc00\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\u\"",
        "\"\\ud800\\\"",
        "{\"\\ud800\":1}",
        /* UTF-8 */
        "\"\x80\"",
        "\"\xff\"",
        "\"\xc0\xaf\"",
        "\"\xc3\"",
        "\"\xe4\xb8\"",
        "\"\xed\xa0\x80\"",
        "\"\xf0\x80\x80\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xf8\x88\x80\x80\x80\"",
        "\"\xc3\x28\"",
        "\"\xe0\x80\xaf\"",
        "\"\xfe\"",
        /* a mark in the middle, or half of one */
        "[\xef\xbb\xbf]",
        "\xef\xbb\xbf",
        "\xef\xbb[]",
        "\xef\xbb\xbf\xef\xbb\xbf[]",
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        int count = decode(CASES[i], strlen(CASES[i]));

        if (count != 2)
            fprintf(stderr, "accepted: %s\n", CASES[i]);
        CHECK_INT(count, 2);
        CHECK_STR(error_field("code"), "bad_json");
    }
    CHECK_INT(decode("\0", 1), 2);
    CHECK_INT(decode("[1]\0", 4), 2);
    CHECK_INT(decode("\"a\0b\"", 5), 2);
}

TEST(nothing_behind_the_text_is_read)
{
    CHECK_INT(decode("1234", 2), 1);
    CHECK_INT(lua_tointeger(L, 1), 12);
    CHECK_INT(decode("true", 3), 2);
    CHECK_INT(decode("\"ab\"", 3), 2);
    CHECK_INT(decode("[1]", 2), 2);
}

TEST(nesting_has_a_bound)
{
    struct ljson_decode deep = { .depth_max = 3 };

    run("function nest(n) return ('['):rep(n) .. (']'):rep(n) end\n"
        "assert(json.decode(nest(64)))\n"
        "local v, err = json.decode(nest(65))\n"
        "assert(v == nil and err.message:find('nested too deeply', 1, true))\n"
        "assert(json.decode(nest(65), 65))\n"
        "assert(json.decode(('{\"a\":'):rep(256) .. '1' .. ('}'):rep(256), 256))\n"
        "assert(not json.decode(nest(100000), 256))\n"
        "assert(not pcall(json.decode, '1', 257) and not pcall(json.decode, '1', 0))");
    lua_settop(L, 0);
    CHECK_INT(ljson_decode(L, STR("[[[1]]]"), &deep), 1);
    lua_settop(L, 0);
    CHECK_INT(ljson_decode(L, STR("[[[[1]]]]"), &deep), 2);
}

TEST(strict_wants_an_object_or_an_array_at_the_top)
{
    struct ljson_decode strict = { .strict = true };

    lua_settop(L, 0);
    CHECK_INT(ljson_decode(L, STR(" [1]"), &strict), 1);
    lua_settop(L, 0);
    CHECK_INT(ljson_decode(L, STR(" {}"), &strict), 1);
    lua_settop(L, 0);
    CHECK_INT(ljson_decode(L, STR(" 1"), &strict), 2);
    CHECK_STR(error_field("message"), "line 1, column 2: expected an object or an array");
}

/* --- both ------------------------------------------------------------------------------------- */

TEST(random_values_come_back_equal_with_equal_bytes)
{
    run("math.randomseed(7)\n"
        "local random = math.random\n"
        "local function text()\n"
        "  local t = {}\n"
        "  for i = 1, random(0, 20) do\n"
        "    t[i] = ({ 'a', 'Z', '\"', '\\\\', '\\n', '\\0', '\\31', '/', '\xc3\xa4', '\xf0\x9f\x98\x80', ' ' })"
        "[random(11)]\n"
        "  end\n"
        "  return table.concat(t)\n"
        "end\n"
        "local function value(depth)\n"
        "  local kind = random(depth > 4 and 5 or 7)\n"
        "  if kind == 1 then return random() < 0.5 end\n"
        "  if kind == 2 then return json.null end\n"
        "  if kind == 3 then return random(-1e6, 1e6) end\n"
        "  if kind == 4 then return (random() - 0.5) * 10 ^ random(-30, 30) end\n"
        "  if kind == 5 then return text() end\n"
        "  local t = {}\n"
        "  for i = 1, random(0, 24) do t[kind == 6 and i or text()] = value(depth + 1) end\n"
        "  return kind == 6 and json.array(t) or json.object(t)\n"
        "end\n"
        "local function same(a, b)\n"
        "  if type(a) ~= 'table' then return a == b end\n"
        "  for k, v in pairs(a) do if not same(v, b[k]) then return false end end\n"
        "  for k in pairs(b) do if a[k] == nil then return false end end\n"
        "  return getmetatable(a) == getmetatable(b)\n"
        "end\n"
        "for _ = 1, 3000 do\n"
        "  local v = value(0)\n"
        "  local text, pretty = json.encode(v), json.encode(v, true)\n"
        "  local again, spaced = json.decode(text), json.decode(pretty)\n"
        "  assert(same(v, again) and same(v, spaced))\n"
        "  assert(json.encode(again) == text and json.encode(spaced, true) == pretty)\n"
        "end");
}

TEST(bytes_do_not_depend_on_the_order_of_making)
{
    run("local function make(...) local t = {} for _, k in ipairs { ... } do t[k] = #k end return t "
        "end\n"
        "local want = '{\"alpha\":5,\"beta\":4,\"delta\":5,\"gamma\":5,\"x\":1,\"y\":1,\"zz\":2}'\n"
        "assert(json.encode(make('alpha', 'beta', 'gamma', 'delta', 'x', 'y', 'zz')) == want)\n"
        "assert(json.encode(make('zz', 'y', 'x', 'delta', 'gamma', 'beta', 'alpha')) == want)");
}

TEST(marks_refuse_what_would_lose_its_metatable)
{
    run("local own = setmetatable({}, { __index = {} })\n"
        "assert(not pcall(json.object, own) and not pcall(json.array, own))\n"
        "assert(not pcall(json.object, 1) and not pcall(json.object, {}, 1))\n"
        "assert(json.is_array({}) and json.is_array({ 1 }) and not json.is_array({ a = 1 }))\n"
        "assert(not json.is_object({}) and json.is_object({ a = 1 }) and not json.is_object({ 1 }))\n"
        "assert(not json.is_object('x') and not json.is_array(nil))\n"
        "assert(not json.is_array({ 1, a = 1 }) and not json.is_object({ 1, a = 1 }))\n"
        "assert(json.is_object(json.object({}, { 'a' })))");
}

TEST(an_object_is_marked_anew_without_an_order)
{
    run("local again = json.object(json.object({ b = 1, a = 2 }))\n"
        "assert(getmetatable(again) == json.object_mark)\n"
        "local unordered = json.object(json.object({ b = 1, a = 2 }, { 'b' }))\n"
        "assert(json.encode(unordered) == '{\"a\":2,\"b\":1}')");
}

TEST(null_is_truthy_and_one_for_all)
{
    run("assert(json.null and json.decode('null') == json.null)\n"
        "assert(json.decode('[null]')[1] == json.null)");
    push("json.null");
    CHECK(ljson_is_null(L, 1));
    push("nil");
    CHECK(!ljson_is_null(L, 1));
}

TEST(encode_within_encode_has_a_buffer_of_its_own)
{
    run("local ffi = require 'ffi'\n"
        "ffi.cdef 'struct ljson_test { int x; };'\n"
        "local inner\n"
        "local t = ffi.metatype('struct ljson_test', {\n"
        "  __tostring = function() inner = json.encode({ 'inner' }) return '42LL' end })\n"
        "assert(json.encode({ 'before', t(1), 'after' }) == '[\"before\",42,\"after\"]')\n"
        "assert(inner == '[\"inner\"]')");
}

int main(void)
{
    int status;

    L = luaL_newstate();
    luaL_openlibs(L);
    ljson_open(L);
    lua_setglobal(L, "json");
    buf_init(&out, 1 << 24);
    status = check_run();
    buf_fini(&out);
    lua_close(L);
    return status;
}
