#include "bind/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "bind/chunks.h"
#include "bind/embedded.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/llog.h"
#include "vm/coroutine.h"
#include "vm/native.h"
#include "vm/task.h"
#include "vm/vm.h"

enum { PATH_BYTES = 4096 };

/* --- files --------------------------------------------------------------------------------------- */

/* What an error shows of PATH: below the app's folder relative to it, "@routes/news/init.lua". */
static void push_chunk_name(lua_State *L, const char *path)
{
    const char *root = env_of(L)->app_root;
    size_t      len  = root ? strlen(root) : 0;

    if (len && strncmp(path, root, len) == 0 && path[len] == '/')
        path += len + 1;
    lua_pushfstring(L, "@%s", path);
}

/* Leaves the file's function, or a message. */
static bool load_file(lua_State *L, const char *path, const char *chunk_name)
{
    return chunks_load(L, env_of(L)->chunks, path, chunk_name);
}

/* --- embedded modules ---------------------------------------------------------------------------- */

static const struct embedded *find_embedded(const char *name)
{
    for (const struct embedded *module = EMBEDDED; module->name; module++)
        if (strcmp(module->name, name) == 0)
            return module;
    return NULL;
}

/* A developer's file in the place of the embedded one. */
static bool load_from_folder(lua_State *L, const char *folder, const char *path)
{
    char file_path[PATH_BYTES];

    snprintf(file_path, sizeof(file_path), "%s/%s", folder, path);
    lua_pushfstring(L, "=%s", path);
    return load_file(L, file_path, lua_tostring(L, -1));
}

/* A loader for package.loaders: the modules under lua/srv. */
static int load_embedded(lua_State *L)
{
    const char            *name   = luaL_checkstring(L, 1);
    const struct embedded *module = find_embedded(name);
    const char            *folder = getenv("SRV_LUA_PATH");
    bool                   loaded;

    if (!module) {
        lua_pushfstring(L, "\n\tno module '%s' in srv", name);
        return 1;
    }
    if (folder && *folder)
        loaded = load_from_folder(L, folder, module->path);
    else
        loaded = luaL_loadbuffer(L, module->code, module->len, module->path) == 0;
    return loaded ? 1 : lua_error(L);
}

/* Second, behind package.preload. */
static void add_embedded_loader(lua_State *L)
{
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "insert");
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "loaders");
    lua_remove(L, -2);
    lua_pushinteger(L, 2);
    lua_pushcfunction(L, load_embedded);
    lua_call(L, 3, 0);
    lua_pop(L, 1);
}

/* --- srv.core.script: what the Lua half of all this needs ------------------------------------------- */

/* load(path) -> function | nil, message */
static int script_load(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);

    push_chunk_name(L, path);
    if (load_file(L, path, lua_tostring(L, -1)))
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static bool is_apps(const char *path, const char *root)
{
    size_t len = root ? strlen(root) : 0;

    return len && strncmp(path, root, len) == 0 && path[len] == '/';
}

/* native(path, symbol) -> function | nil, message, whether only the symbol is missing */
static int script_native(lua_State *L)
{
    const char   *path   = luaL_checkstring(L, 1);
    const char   *symbol = luaL_checkstring(L, 2);
    struct vm    *vm     = vm_of(L);
    struct env   *env    = vm->env;
    struct err    err    = { 0 };
    lua_CFunction open = native_load(vm->natives, path, symbol, is_apps(path, env->app_root), &err);

    if (open) {
        lua_pushcfunction(L, open);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, err.text);
    lua_pushboolean(L, err.code == ERR_NOT_FOUND);
    return 3;
}

/* warn(message, name, where) */
static int script_warn(lua_State *L)
{
    log_warn(luaL_checkstring(L, 1), "name=%s where=%s", luaL_checkstring(L, 2),
             luaL_checkstring(L, 3));
    return 0;
}

static int open_core_script(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "load", script_load },
                                          { "native", script_native },
                                          { "warn", script_warn },
                                          { NULL, NULL } };

    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    lua_pushstring(L, env_of(L)->app_root ? env_of(L)->app_root : ".");
    lua_setfield(L, -2, "root");
    lua_pushliteral(L, SRV_LUA_SHARE);
    lua_setfield(L, -2, "lua_folders");
    lua_pushliteral(L, SRV_LUA_LIB);
    lua_setfield(L, -2, "c_folders");
    return 1;
}

/* --- opening ------------------------------------------------------------------------------------------ */

static void preload(lua_State *L, const char *name, lua_CFunction open)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
    lua_pushcfunction(L, open);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

static void open_libraries(lua_State *L, void *arg)
{
    struct env *env = arg;

    luaL_openlibs(L);
    for (const struct core_module *module = CORE_MODULES; module->name; module++)
        preload(L, module->name, module->open);
    preload(L, "srv.core.coroutine", coroutine_open);
    preload(L, "srv.core.script", open_core_script);
    add_embedded_loader(L);
    if (env->log)
        llog_take_print(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "srv.async.boot");
    lua_call(L, 1, 0);
}

int script_open(struct vm *vm, struct env *env, struct err *err)
{
    vm->env = env;
    return vm_protect(vm, open_libraries, env, err);
}

/* --- the app ------------------------------------------------------------------------------------------- */

/* Lives until on_end. */
struct app_load {
    script_loaded_fn on_loaded;
    void            *arg;
    char             path[];
};

static int prepare_app(lua_State *co, struct task *task, void *arg)
{
    struct app_load *load = arg;

    push_chunk_name(co, load->path);
    if (!load_file(co, load->path, lua_tostring(co, -1)))
        lua_error(co);
    lua_replace(co, 1); /* over the name: the function stands alone */
    return 0;
}

static void tell_loaded(struct task *task, enum task_end how, lua_State *co, struct app_load *load)
{
    lua_State  *L   = co ? co : task_vm(task)->batch;
    const char *why = NULL;

    switch (how) {
    case TASK_RETURNED: lua_settop(co, 1); break;
    case TASK_RAISED:
        task_push_failure(co, task);
        why = lua_tostring(co, -1);
        break;
    case TASK_CANCELLED: why = task_reason(task); break;
    }
    load->on_loaded(task_vm(task), L, why, load->arg);
}

static void on_app_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct app_load *load = arg;

    tell_loaded(task, how, co, load);
    free(load);
}

struct task *script_load_app(struct vm *vm, const char *path, script_loaded_fn on_loaded, void *arg)
{
    size_t           bytes = strlen(path) + 1;
    struct app_load *load  = malloc(sizeof(*load) + bytes);

    if (!load) {
        on_loaded(vm, vm->batch, "no memory to load the app", arg);
        return NULL;
    }
    load->on_loaded = on_loaded;
    load->arg       = arg;
    memcpy(load->path, path, bytes);
    return task_start(vm, &(struct task_spec){ .prepare = prepare_app,
                                               .on_end  = on_app_end,
                                               .arg     = load,
                                               .label   = "load the app",
                                               .loads   = true });
}

/* --- for vm_hooks ---------------------------------------------------------------------------------------- */

void script_push_error(lua_State *L, const char *code, const char *message)
{
    lerror_push(L, code, "%s", message);
}

void script_report(struct vm *vm, struct task *task, const char *what, const char *text)
{
    const struct env *env   = vm->env;
    const char       *label = task ? task_label(task) : NULL;

    log_error(what, "task=%s generation=%u error=%s", label ? label : "", env ? env->generation : 0,
              text);
}

const char *script_luajit_version(void)
{
#ifdef SRV_CHECKHOOK
    return LUAJIT_VERSION ", with CHECKHOOK";
#else
    return LUAJIT_VERSION ", without CHECKHOOK: a compiled loop can be neither named nor stopped";
#endif
}
