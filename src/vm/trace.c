#include "vm/trace.h"

#include <stdbool.h>
#include <string.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "vm/task_impl.h"
#include "vm/vm_state.h"

enum {
    NOTES_MAX = 32,
    TEXT_MAX  = 16 * 1024, /* of a note that is text; the innermost part is kept */
};

/* registry[NOTES] = { error value, coroutine or text, ... } */
static const char NOTES[] = "srv.trace";

/* Pushes the notes about the error value at INDEX, empty if they were about another. */
static void push_notes(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    lua_getfield(L, LUA_REGISTRYINDEX, NOTES);
    if (lua_istable(L, -1)) {
        lua_rawgeti(L, -1, 1);
        if (lua_rawequal(L, -1, -3)) {
            lua_pop(L, 1);
            lua_remove(L, -2);
            return;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_createtable(L, 2, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, NOTES);
}

/* Appends the value on top to the notes below it; pops both. */
static void append_note(lua_State *L)
{
    int count = (int)lua_objlen(L, -2);

    if (count < NOTES_MAX)
        lua_rawseti(L, -2, count + 1);
    else
        lua_pop(L, 1);
    lua_pop(L, 1);
}

void trace_note_coroutine(lua_State *L, lua_State *dead)
{
    luaL_checkstack(L, 6, NULL);
    lua_checkstack(dead, 1);
    lua_pushvalue(dead, -1);
    lua_xmove(dead, L, 1);
    if (lua_isnil(L, -1)) { /* nothing to know it again by */
        lua_pop(L, 1);
        return;
    }
    push_notes(L, -1);
    lua_pushthread(dead);
    lua_xmove(dead, L, 1);
    append_note(L);
    lua_pop(L, 1);
}

/* Cuts the text on top to TEXT_MAX bytes. */
static void bound_text(lua_State *L)
{
    if (lua_objlen(L, -1) <= TEXT_MAX)
        return;
    lua_pushlstring(L, lua_tostring(L, -1), TEXT_MAX);
    lua_remove(L, -2);
}

void trace_note_text(lua_State *L, int index)
{
    if (index < 0)
        index = lua_gettop(L) + index + 1;
    luaL_checkstack(L, 6, NULL);
    if (lua_isnil(L, index)) {
        lua_pop(L, 1);
        return;
    }
    bound_text(L);
    push_notes(L, index);
    lua_insert(L, -2);
    append_note(L);
}

void trace_forget(lua_State *L)
{
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, NOTES);
}

static const char HEAD[]   = "stack traceback:";
static const char JOINED[] = "\nresumed from:";

/* Joins the two texts on top: the second one's heading says how they hang together. */
static void join_sections(lua_State *L)
{
    const char *text     = lua_tostring(L, -1);
    bool        has_head = strncmp(text, HEAD, sizeof(HEAD) - 1) == 0;

    lua_pushstring(L, has_head ? JOINED : "\n");
    lua_pushstring(L, has_head ? text + sizeof(HEAD) - 1 : text);
    lua_remove(L, -3);
    lua_concat(L, 3);
}

/* Makes text of the note on top. */
static void note_to_text(lua_State *L)
{
    lua_State *dead = lua_tothread(L, -1);

    if (!dead)
        return;
    luaL_traceback(L, dead, NULL, 0);
    lua_remove(L, -2);
}

/* Pushes texts of what was noted, innermost first; returns how many. */
static int push_noted(lua_State *L, int index)
{
    int count = 0, notes;

    push_notes(L, index);
    notes = (int)lua_objlen(L, -1);
    for (int i = 2; i <= notes; i++) {
        lua_rawgeti(L, -1 - count, i);
        note_to_text(L);
        count++;
    }
    lua_remove(L, -1 - count);
    return count;
}

/* Makes one text of the COUNT texts on top. */
static void join_all(lua_State *L, int count)
{
    int first = lua_gettop(L) - count + 1;

    if (count == 0)
        lua_pushliteral(L, "");
    for (int i = 1; i < count; i++) {
        lua_pushvalue(L, first);
        lua_pushvalue(L, first + i);
        join_sections(L);
        lua_replace(L, first);
    }
    lua_settop(L, first);
}

static int absolute(lua_State *L, int index)
{
    return index < 0 ? lua_gettop(L) + index + 1 : index;
}

void trace_push(lua_State *L, int index, lua_State *co)
{
    int count = 0;

    index = absolute(L, index);
    luaL_checkstack(L, NOTES_MAX + 10, NULL);
    if (!lua_isnil(L, index))
        count = push_noted(L, index);
    if (co) {
        luaL_traceback(L, co, NULL, 0);
        count++;
    }
    join_all(L, count);
    if (strcmp(lua_tostring(L, -1), HEAD) == 0) { /* nothing ran: the file does not compile */
        lua_pop(L, 1);
        lua_pushliteral(L, "");
    }
}

static int push_resumers(lua_State *L)
{
    struct vm  *vm    = vm_of(L);
    struct hop *hop   = vm->running ? vm->running->hops : NULL;
    int         count = 0;

    for (struct link *link = vm->links; link && count < NOTES_MAX; link = link->outer, count++)
        luaL_traceback(L, link->resumer, NULL, 0);
    for (; hop && count < NOTES_MAX; hop = hop->outer, count++)
        luaL_traceback(L, hop->outer ? hop->outer->co : vm->running->co.L, NULL, 0);
    return count;
}

void trace_push_running(lua_State *L, int index, int level)
{
    int count = 0;

    index = absolute(L, index);
    luaL_checkstack(L, 2 * NOTES_MAX + 10, NULL);
    if (!lua_isnil(L, index))
        count = push_noted(L, index);
    luaL_traceback(L, L, NULL, level);
    count += 1 + push_resumers(L);
    join_all(L, count);
}

void trace_push_message(lua_State *L, int index)
{
    if (luaL_callmeta(L, index, "__tostring")) {
        if (lua_isstring(L, -1))
            return;
        lua_pop(L, 1);
    }
    if (lua_isstring(L, index)) {
        lua_pushvalue(L, index);
        lua_tostring(L, -1);
    } else {
        lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, index));
    }
}

static bool is_ours(const lua_Debug *ar)
{
    return strncmp(ar->source, "=srv/", 5) == 0;
}

bool trace_find_place(lua_State *L, int level, lua_Debug *ar)
{
    for (; lua_getstack(L, level, ar); level++) {
        lua_getinfo(L, "Sl", ar);
        if (ar->currentline > 0 && !is_ours(ar))
            return true;
    }
    return false;
}

void trace_push_where(lua_State *L)
{
    lua_Debug ar;

    if (trace_find_place(L, 1, &ar))
        lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    else
        lua_pushliteral(L, "");
}
