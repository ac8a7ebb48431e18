#include "bind/lredis_reply.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/number.h"
#include "bind/lerror.h"
#include "bind/ljson.h"
#include "bind/lstr.h"
#include "data/redis_command.h"
#include "data/redis_reader.h"
#include "data/redis_reply.h"

/* --- from Lua ----------------------------------------------------------------------------------------- */

static const char *check_word(lua_State *L, int index, int number)
{
    int type = lua_type(L, index);

    if (type == LUA_TSTRING || (type == LUA_TNUMBER && !isnan(lua_tonumber(L, index))))
        return NULL;
    return lua_pushfstring(L, "argument %d is %s: Redis takes strings and numbers%s", number,
                           type == LUA_TNUMBER ? "not a number" : luaL_typename(L, index),
                           type == LUA_TTABLE
                               ? "; encode a table first, or unpack it into arguments"
                           : type == LUA_TBOOLEAN ? "; write 1 and 0"
                                                  : "");
}

const char *lredis_check_words(lua_State *L, int first, int last)
{
    const char *wrong = NULL;

    if (last < first || lua_type(L, first) != LUA_TSTRING)
        return "the name of the command must be a string";
    for (int i = first + 1; i <= last && !wrong; i++)
        wrong = check_word(L, i, i - first);
    return wrong;
}

/* As Redis reads them: "inf" for infinity. */
static void add_number(struct buf *to, double number)
{
    char text[NUMBER_TEXT_MAX];

    if (isinf(number))
        redis_add_word(to, number > 0 ? STR("inf") : STR("-inf"));
    else
        redis_add_word(to, str_make(text, number_format(text, number)));
}

void lredis_add_words(lua_State *L, struct buf *to, int first, int last)
{
    redis_add_head(to, (size_t)(last - first + 1));
    for (int i = first; i <= last; i++) {
        size_t len;

        if (lua_type(L, i) == LUA_TNUMBER) {
            add_number(to, lua_tonumber(L, i));
        } else {
            const char *text = lua_tolstring(L, i, &len);

            redis_add_word(to, str_make(text, len));
        }
    }
}

/* --- to Lua --------------------------------------------------------------------------------------------- */

/* Beyond 2^53 a double would not be the number that Redis has. */
static void push_integer(lua_State *L, int64_t number)
{
    char digits[24];

    if (number >= -(int64_t)NUMBER_INTEGER_MAX && number <= (int64_t)NUMBER_INTEGER_MAX) {
        lua_pushnumber(L, (lua_Number)number);
        return;
    }
    snprintf(digits, sizeof(digits), "%" PRId64, number);
    lua_pushstring(L, digits);
}

static bool is_one_of(struct str word, const struct str *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(word, words[i]))
            return true;
    return false;
}

/* What passes by itself is `unavailable`; the rest has the one code, and begins with Redis' own word. */
static void push_fault(lua_State *L, struct str fault)
{
    static const struct str PASSING[] = { STR_INIT("LOADING"), STR_INIT("BUSY"),
                                          STR_INIT("MASTERDOWN"), STR_INIT("CLUSTERDOWN"),
                                          STR_INIT("TRYAGAIN") };
    static const struct str CLUSTER[] = { STR_INIT("MOVED"), STR_INIT("ASK") };
    struct str              word      = reply_fault_word(fault);
    const char *code = is_one_of(word, PASSING, ARRAY_LEN(PASSING)) ? "unavailable" : "redis";

    lstr_push(L, fault);
    if (is_one_of(word, CLUSTER, ARRAY_LEN(CLUSTER)))
        lerror_push(L, code,
                    "%s: the key belongs to another server of a Redis Cluster, and %s follows no "
                    "redirections: use a proxy for clusters, or one server",
                    lua_tostring(L, -1), redis_reader_library());
    else
        lerror_push(L, code, "%s", lua_tostring(L, -1));
    lua_remove(L, -2);
}

static void push_node(lua_State *L, const struct reply_node *node, struct str *rest)
{
    switch (node->kind) {
    case REPLY_TEXT:
    case REPLY_STATUS: lstr_push(L, node->text); break;
    case REPLY_INTEGER: push_integer(L, node->number); break;
    case REPLY_FAULT: push_fault(L, node->text); break;
    case REPLY_NIL: ljson_push_null(L); break;
    case REPLY_ARRAY:
        luaL_checkstack(L, 4, "a reply is nested too deep");
        lua_createtable(L, (int)node->number, 0);
        for (int i = 1; i <= (int)node->number; i++) {
            lredis_push_element(L, rest);
            lua_rawseti(L, -2, i);
        }
        break;
    }
}

void lredis_push_element(lua_State *L, struct str *rest)
{
    struct reply_node node = { .kind = REPLY_NIL };

    reply_next(rest, &node);
    push_node(L, &node, rest);
}

int lredis_push_reply(lua_State *L, struct str *rest)
{
    struct reply_node node = { .kind = REPLY_NIL };

    reply_next(rest, &node);
    if (node.kind == REPLY_NIL || node.kind == REPLY_FAULT)
        lua_pushnil(L);
    if (node.kind == REPLY_NIL)
        return 1;
    push_node(L, &node, rest);
    return node.kind == REPLY_FAULT ? 2 : 1;
}
