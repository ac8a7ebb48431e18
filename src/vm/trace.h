/* vm/trace.h - where an error came from, told through all coroutines it passed.
 *
 * A coroutine that failed keeps its stack, so a reference is all that is kept while the error is on
 * its way; the text is made when somebody asks. The notes belong to one error value: another value
 * begins anew. */
#ifndef VM_TRACE_H
#define VM_TRACE_H

#include <stdbool.h>

#include <lua.h>

struct vm;

/* DEAD's error value is on top of DEAD's stack and is about to be raised or returned in L. */
void trace_note_coroutine(lua_State *L, lua_State *dead);
/* The same with a traceback that is text already: the error value is at INDEX, the text on top; the
 * text is taken off. */
void trace_note_text(lua_State *L, int index);
/* No error is on its way any more. */
void trace_forget(lua_State *L);

/* Pushes on L what was noted of the error value at INDEX of L, then the stack of CO (NULL: none):
 * "stack traceback:\n\t...", or "" where nothing was on it. */
void trace_push(lua_State *L, int index, lua_State *co);

/* The same of the code that runs now in L, from LEVEL on (1: what called the running C function),
 * through all that wait for it to yield. */
void trace_push_running(lua_State *L, int index, int level);

/* Pushes the error value at INDEX as text, as tostring() would. */
void trace_push_message(lua_State *L, int index);

/* The innermost Lua function of L, from LEVEL on, that is not srv's own; AR gets its "Sl". Allocates
 * nothing. */
bool trace_find_place(lua_State *L, int level, lua_Debug *ar);
/* Pushes "file:line: " of it, or "". */
void trace_push_where(lua_State *L);

#endif
