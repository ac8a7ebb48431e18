#include "bind/env.h"

#include "vm/vm.h"

struct env *env_of(lua_State *L)
{
    return vm_of(L)->env;
}
