/* vm/profile_lua.h - the frames of a Lua stack, for the profiler. In the VM's thread. */
#ifndef VM_PROFILE_LUA_H
#define VM_PROFILE_LUA_H

#include <lua.h>

#include "vm/profile_store.h"

struct task;
struct vm;

enum { PROFILE_LUA_DEPTH_MAX = PROFILE_DEPTH_MAX - 40 }; /* room for a label and C functions */

/* Innermost first; what is deeper than the bound is left out. */
struct profile_lua {
    const char *source; /* of the innermost function, as Lua has it: to be compared, not read */
    unsigned    depth;
    const struct profile_frame *frames[PROFILE_LUA_DEPTH_MAX];
};

/* Of the code that runs in L, through all that wait for it to yield. */
void profile_lua_running(struct profile_lua *out, struct profile_store *store, lua_State *L,
                         const struct vm *vm);
/* Of a task that waits: from what it waits in to the function that it runs. */
void profile_lua_waiting(struct profile_lua *out, struct profile_store *store,
                         const struct task *task);

/* Where Lua code has called the C function that runs. */
struct profile_call {
    const char *source; /* as above; NULL: not known */
    int         line, defined;
};

/* In a signal handler, while a C function runs that the interpreter has called in L, and not while
 * L's stack is moved. */
void profile_lua_call(struct profile_call *out, lua_State *L);
/* The frame of the innermost function in LUA as it was in CALL, if that was in this function; else the
 * innermost frame. */
const struct profile_frame *profile_lua_caller(const struct profile_lua  *lua,
                                               struct profile_store      *store,
                                               const struct profile_call *call);

#endif
