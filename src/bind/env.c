#include "bind/env.h"

#include "vm/vm.h"

struct env *env_of(lua_State *L)
{
    return vm_of(L)->env;
}

void env_guest_enter(struct env *env)
{
    env->guest_count++;
}

void env_guest_leave(struct env *env)
{
    if (--env->guest_count == 0 && env->on_no_guests)
        env->on_no_guests(env);
}
