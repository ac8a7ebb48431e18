/* bind/script.h - a VM made ready for an app: Lua's libraries, ours, and the app itself. */
#ifndef BIND_SCRIPT_H
#define BIND_SCRIPT_H

#include <lua.h>

struct env;
struct err;
struct task;
struct vm;

/* Opens the libraries and makes them ours: coroutines that may wait inside, require() that may wait,
 * guarded globals, print() that logs, the modules srv.*. ENV is borrowed for the VM's life. From the
 * loop's turn. */
int script_open(struct vm *vm, struct env *env, struct err *err);

/* The file was run: what it returned is on top of L; or WHY tells what went wrong, with file, line
 * and traceback. Protected; may raise and start tasks. */
typedef void (*script_loaded_fn)(struct vm *vm, lua_State *L, const char *why, void *arg);

/* Runs the Lua file at PATH (absolute; its errors show it relative to the app's folder) in a task
 * of its own. ON_LOADED may come before this returns; the task is NULL then. */
struct task *script_load_app(struct vm *vm, const char *path, script_loaded_fn on_loaded,
                             void *arg);

/* For struct vm_hooks: error objects by bind/lerror.h, reports to the log. */
void script_push_error(lua_State *L, const char *code, const char *message);
void script_report(struct vm *vm, struct task *task, const char *what, const char *text);

/* "LuaJIT 2.1.0-beta3, a loop can be stopped": for srv --version. */
const char *script_luajit_version(void);

#endif
