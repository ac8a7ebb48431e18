/* bind/lhalf.h - what a C function has made and not yet handed over, while Lua may still run out of memory
 * and jump away: a statement whose parameters are being read.
 *
 * It is the VM's until it is taken. What nobody took is given back in a later slice of Lua, or with the VM:
 * not at once, since a finalizer may ask for a statement of its own amid the making of another. */
#ifndef BIND_LHALF_H
#define BIND_LHALF_H

#include <lua.h>

#include "base/list.h"

/* A part of what is made. */
struct lhalf {
    struct list link;
    void (*drop)(struct lhalf *half); /* frees the whole */
};

/* Once in each VM, before lhalf_keep(). */
void lhalf_prepare(lua_State *L);

/* With `drop` set; raises nothing. */
void lhalf_keep(lua_State *L, struct lhalf *half);

/* It has an owner now, or is to be freed. */
static inline void lhalf_take(struct lhalf *half)
{
    list_remove(&half->link);
}

#endif
