/* What the JSON codec costs beside lua-cjson, where that is installed: ns of CPU time for each call
 * from Lua, the best of several rounds. Prints a table with tabs. */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lualib.h>

#include "base/buf.h"
#include "bind/ljson.h"

/* ljson_encode() into a buffer that is kept, as for an answer: no Lua string is made. */
static int encode_to_buffer(lua_State *L)
{
    static struct buf out;

    if (!out.bytes_max)
        buf_init(&out, 1 << 24);
    buf_clear(&out);
    if (ljson_encode(L, 1, &out, 0) != LJSON_OK)
        return luaL_error(L, "%s", lua_tostring(L, -1));
    return 0;
}

static const char SCRIPT[] =
    "local json, to_buffer = ...\n"
    "local found, cjson = pcall(require, 'cjson')\n"
    "local function record(i)\n"
    "  return { id = i, title = 'The title of number ' .. i, price = i + 0.25, ok = true,\n"
    "    tags = { 'lua', 'web' }, author = { name = 'Ann', email = 'ann@example.com' } }\n"
    "end\n"
    "local list, floats, text, map = {}, {}, {}, {}\n"
    "for i = 1, 10 do list[i] = record(i) end\n"
    "for i = 1, 100 do floats[i] = math.sqrt(i) end\n"
    "for i = 1, 40 do text[i] = 'A paragraph with \"quotes\", \\n line ends and ümlauts.' end\n"
    "for i = 1, 100 do map['key' .. i] = i end\n"
    "local CASES = {\n"
    "  { 'id alone', { id = '123' } },\n"
    "  { '3 fields', { id = 123, name = 'Ann Example', active = true } },\n"
    "  { '10 records', list },\n"
    "  { '100 square roots', floats },\n"
    "  { '40 paragraphs', text },\n"
    "  { '100 keys', map },\n"
    "}\n"
    "local function cost(fn, arg)\n"
    "  local best = math.huge\n"
    "  local turns = 1\n"
    "  repeat\n"
    "    turns = turns * 2\n"
    "    local start = os.clock()\n"
    "    for _ = 1, turns do fn(arg) end\n"
    "    local spent = os.clock() - start\n"
    "  until spent > 0.02\n"
    "  for _ = 1, 7 do\n"
    "    collectgarbage()\n"
    "    local start = os.clock()\n"
    "    for _ = 1, turns do fn(arg) end\n"
    "    best = math.min(best, (os.clock() - start) / turns * 1e9)\n"
    "  end\n"
    "  return best\n"
    "end\n"
    "local function column(fn, arg) return fn and ('%.0f'):format(cost(fn, arg)) or '-' end\n"
    "print(table.concat({ 'ns', 'bytes', 'into an answer', 'encode', 'cjson', 'decode', 'cjson' },\n"
    "  '\\t'))\n"
    "for _, case in ipairs(CASES) do\n"
    "  local name, value = case[1], case[2]\n"
    "  local encoded = json.encode(value)\n"
    "  print(table.concat({ name, #encoded, column(to_buffer, value), column(json.encode, value),\n"
    "    column(found and cjson.encode, value), column(json.decode, encoded),\n"
    "    column(found and cjson.decode, encoded) }, '\\t'))\n"
    "end\n";

int main(void)
{
    lua_State *L = luaL_newstate();

    luaL_openlibs(L);
    if (luaL_dostring(
            L, "package.cpath = package.cpath .. ';/usr/lib/x86_64-linux-gnu/lua/5.1/?.so'") != 0 ||
        luaL_loadstring(L, SCRIPT) != 0)
        return 1;
    ljson_open(L);
    lua_pushcfunction(L, encode_to_buffer);
    if (lua_pcall(L, 2, 0, 0) != 0) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        return 1;
    }
    lua_close(L);
    return 0;
}
