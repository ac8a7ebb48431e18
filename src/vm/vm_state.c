#include "vm/vm_state.h"

#include "base/compiler.h"
#include "base/log.h"
#include "vm/task_impl.h"

struct vm *vm_of(lua_State *L)
{
    void *heap;

    lua_getallocf(L, &heap);
    return container_of(heap, struct vm, heap);
}

/* --- hooks -------------------------------------------------------------------------------------- */

void vm_push_error(lua_State *L, const char *code, const char *message)
{
    struct vm *vm = vm_of(L);

    if (vm->hooks->push_error)
        vm->hooks->push_error(L, code, message);
    else
        lua_pushstring(L, message);
}

void vm_report(struct vm *vm, struct task *task, const char *what, const char *text)
{
    const char *label = task && task->label ? task->label : "";

    if (vm->hooks->report)
        vm->hooks->report(vm, task, what, text);
    else
        log_error(what, "task=%s error=%s", label, text);
}

/* --- handles ------------------------------------------------------------------------------------ */

void handle_link(struct handle *handle, struct vm *vm)
{
    list_append(&vm->handles, &handle->link);
}

void handle_unlink(struct handle *handle)
{
    list_remove(&handle->link);
}
