#include "bind/leval.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "bind/lclass.h"
#include "bind/lstr.h"
#include "vm/task.h"
#include "vm/vm.h"

#define PRINTER "srv.eval.Printer"

/* Ours until on_end(). */
struct leval {
    struct str                text;
    const struct leval_hooks *hooks;
    void                     *arg;
    struct task              *task;
    struct leval            **printer; /* what a printer holds: cut from either side */
};

/* --- what the text prints with, which may outlive it ---------------------------------------------------- */

static int printer_gc(lua_State *L)
{
    struct leval **printer = luaL_checkudata(L, 1, PRINTER);

    if (*printer)
        (*printer)->printer = NULL;
    *printer = NULL;
    return 0;
}

/* print(text) -> boolean: it has arrived */
static int printer_call(lua_State *L)
{
    struct leval **printer = luaL_checkudata(L, 1, PRINTER);
    struct str     text    = lstr_check(L, 2);

    lua_pushboolean(L, *printer && (*printer)->hooks->on_print(text, (*printer)->arg));
    return 1;
}

static void push_printer(lua_State *L, struct leval *eval)
{
    static const luaL_Reg METHODS[] = {
        { "__call", printer_call },
        { "__gc", printer_gc },
        { NULL, NULL },
    };

    lclass_add(L, PRINTER, METHODS);
    eval->printer  = lclass_new(L, PRINTER, sizeof(struct leval *));
    *eval->printer = eval;
}

/* --- the task -------------------------------------------------------------------------------------------- */

static void require_module(lua_State *L, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
}

/* evaluate(text, print, srv) -> true, texts... | false, why */
static int prepare(lua_State *co, struct task *task, void *arg)
{
    struct leval *eval = arg;

    require_module(co, "srv.async.evaluate");
    lstr_push(co, eval->text);
    push_printer(co, eval);
    require_module(co, "srv");
    return 3;
}

static void tell_returned(struct leval *eval, lua_State *co)
{
    struct str values[LEVAL_VALUES_MAX];
    unsigned   count = (unsigned)lua_gettop(co) - 1;

    if (!lua_toboolean(co, 1)) {
        eval->hooks->on_fault(lstr_at(co, 2), eval->arg);
        return;
    }
    if (count > LEVAL_VALUES_MAX)
        count = LEVAL_VALUES_MAX;
    for (unsigned i = 0; i < count; i++)
        values[i] = lstr_at(co, (int)i + 2);
    eval->hooks->on_values(values, count, eval->arg);
}

static struct str text_of_reason(const char *reason)
{
    if (strcmp(reason, "deadline") == 0)
        return STR("it took longer than it may, and was ended");
    if (strcmp(reason, "shutdown") == 0)
        return STR("it was ended with the version of the app that it ran in");
    return str_of(reason);
}

static void tell(struct leval *eval, struct task *task, enum task_end how, lua_State *co)
{
    switch (how) {
    case TASK_RETURNED: tell_returned(eval, co); return;
    case TASK_RAISED:
        task_push_failure(co, task);
        eval->hooks->on_fault(lstr_at(co, -1), eval->arg);
        return;
    case TASK_CANCELLED:
        eval->hooks->on_fault(text_of_reason(task_reason(task)), eval->arg);
        return;
    }
}

static void on_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct leval *eval = arg;

    if (eval->printer)
        *eval->printer = NULL;
    tell(eval, task, how, co);
    free(eval);
}

struct leval *leval_start(struct vm *vm, struct str text, uint64_t limit_ms,
                          const struct leval_hooks *hooks, void *arg)
{
    struct leval    *eval = malloc(sizeof(*eval));
    struct task     *task;
    struct task_spec spec = { .prepare     = prepare,
                              .on_end      = on_end,
                              .arg         = eval,
                              .label       = "srv repl",
                              .deadline_ms = limit_ms };

    if (!eval) {
        hooks->on_fault(STR("no memory to run it"), arg);
        return NULL;
    }
    *eval = (struct leval){ .text = text, .hooks = hooks, .arg = arg };
    task  = task_start(vm, &spec);
    if (!task)
        return NULL; /* over, and freed */
    eval->task = task;
    return eval;
}

void leval_cancel(struct leval *eval)
{
    task_cancel(eval->task, "called off");
}
