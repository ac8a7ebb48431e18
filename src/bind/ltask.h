/* bind/ltask.h - srv.core.task: tasks for Lua, from which lua/srv/async/task.lua makes the API.
 *
 * What an ended task gave is its *outcome*, which Lua code gets as values: true and the results;
 * false, the error value and its traceback; nil and an error object (cancelled). C cannot raise
 * after a wait, so raising again is left to Lua. */
#ifndef BIND_LTASK_H
#define BIND_LTASK_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "vm/task_spec.h"

#define LTASK_METATABLE "srv.Task"

/* Seconds at INDEX as milliseconds, rounded up, for task_wait_for(); nil or none is UINT64_MAX. */
uint64_t ltask_timeout_ms(lua_State *L, int index);

/* nil and the error object of a wait that took too long. */
int ltask_push_timeout(lua_State *L);

/* Pushes on L an array of what the ended TASK gave; returns how many. CO is its coroutine. */
int ltask_pack_outcome(lua_State *L, struct task *task, enum task_end how, lua_State *co);
/* Pushes the COUNT values of the array at INDEX. */
int ltask_unpack_outcome(lua_State *L, int index, int count);

/* TASK was made by spawn(), and its parent waits for it, however long. */
bool ltask_is_awaited(const struct task *task);

/* srv.core.task: sleep, spawn, background, defer, raise, traceback, misuse, where, scope */
int ltask_open(lua_State *L);

#endif
