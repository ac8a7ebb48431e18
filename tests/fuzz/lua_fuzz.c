/* Fuzzes what is written in Lua: FUZZ_SCRIPT, a file of tests/fuzz/lua, returns a function that is called
 * with each input, in a task of its own in the server's own Lua. What it raises is a finding.
 *
 * A fuzzer sees nothing of Lua by itself. A hook counts each step from one line of the server's modules
 * to the next in libFuzzer's extra counters, so that an input which takes a new way through them is
 * kept, like one that does so in C. Hooks want the interpreter: the compiler is off. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <luajit.h>

#include "base/err.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "support/lua_app.h"
#include "vm/task.h"
#include "vm/vm.h"

enum {
    STEPS     = 1 << 15, /* counters: a power of 2 */
    LINES_MAX = 5000000, /* of one input: more is a loop without end */
    COLLECT   = 512,     /* inputs between collections, which run the finalizers */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Where libFuzzer looks for counters besides the compiler's. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t steps[STEPS];

struct fuzz {
    struct lua_app app;
    int            target; /* the script's function, in the registry */
    struct str     input;
    unsigned       inputs;
    bool           ended;
    uint32_t       place; /* the line that ran last, as a hash */
    unsigned       lines;
    bool           seen[STEPS]; /* places, for people: how much of the modules has run */
    unsigned       seen_count;
};

static struct fuzz fuzz = { .target = LUA_NOREF };

static void find(const char *what, const char *text)
{
    fprintf(stderr, "%s: %s: %s\n", FUZZ_SCRIPT, what, text);
    abort();
}

/* FNV-1a: the same in each run, as addresses are not. */
static uint32_t hash_of(const char *source, int line)
{
    uint32_t hash = 2166136261u ^ (uint32_t)line;

    for (; *source; source++)
        hash = (hash ^ (unsigned char)*source) * 16777619u;
    return hash ^ hash >> 16;
}

static void on_line(lua_State *L, lua_Debug *ar)
{
    uint8_t *step;
    uint32_t place;

    if (++fuzz.lines > LINES_MAX)
        find("does not end", "too many lines of Lua for one input");
    if (!lua_getinfo(L, "S", ar) || strncmp(ar->source, "=srv/", 5) != 0)
        return;
    place      = hash_of(ar->source, ar->currentline);
    step       = &steps[(place ^ fuzz.place >> 1) % STEPS];
    fuzz.place = place;
    *step += *step < UINT8_MAX;
    fuzz.seen_count += !fuzz.seen[place % STEPS];
    fuzz.seen[place % STEPS] = true;
}

static int prepare_script(lua_State *co, struct task *task, void *arg)
{
    luaJIT_setmode(co, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    lua_sethook(co, on_line, LUA_MASKLINE, 0);
    if (luaL_loadfile(co, FUZZ_SCRIPT) != 0)
        lua_error(co);
    return 0;
}

static int prepare_input(lua_State *co, struct task *task, void *arg)
{
    if (++fuzz.inputs % COLLECT == 0)
        lua_gc(co, LUA_GCCOLLECT, 0);
    fuzz.place = 0;
    fuzz.lines = 0;
    lua_rawgeti(co, LUA_REGISTRYINDEX, fuzz.target);
    lua_pushlstring(co, fuzz.input.at, fuzz.input.len);
    return 1;
}

/* What the script has returned is the target. */
static void keep_target(lua_State *co)
{
    if (!lua_isfunction(co, 1))
        find("no target", "the script returns no function");
    lua_pushvalue(co, 1);
    fuzz.target = luaL_ref(co, LUA_REGISTRYINDEX);
}

static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    fuzz.ended = true;
    loop_break(fuzz.app.loop);
    if (how == TASK_CANCELLED)
        find("cancelled", task_reason(task));
    if (how == TASK_RAISED) {
        task_push_failure(co, task);
        find("raised", lua_tostring(co, -1));
    }
    if (fuzz.target == LUA_NOREF)
        keep_target(co);
}

static void on_report(struct vm *vm, struct task *task, const char *what, const char *text)
{
    find(what, text);
}

static const struct vm_hooks HOOKS = { .push_error = script_push_error, .report = on_report };

/* To its end, which may come before task_start() returns: the loop then ends at its first turn. */
static void run(struct task_spec *spec)
{
    fuzz.ended   = false;
    spec->on_end = on_end;
    spec->label  = "fuzz";
    task_start(fuzz.app.vm, spec);
    do
        loop_run(fuzz.app.loop);
    while (!fuzz.ended);
}

static void close_app(void)
{
    fprintf(stderr, "%u lines of Lua\n", fuzz.seen_count);
    lua_app_close(&fuzz.app);
}

static void open_app(void)
{
    struct err err = { 0 };

    if (lua_app_open(&fuzz.app, FUZZ_ROOT, &HOOKS, &err) != 0)
        find("no Lua", err.text);
    atexit(close_app);
    run(&(struct task_spec){ .prepare = prepare_script });
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (fuzz.target == LUA_NOREF)
        open_app();
    fuzz.input = str_make((const char *)bytes, len);
    run(&(struct task_spec){ .prepare = prepare_input });
    return 0;
}
