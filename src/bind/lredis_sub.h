/* bind/lredis_sub.h - clients as all files of bind/lredis*.c know them, and subscriptions. */
#ifndef BIND_LREDIS_SUB_H
#define BIND_LREDIS_SUB_H

#include <lua.h>

#include "vm/vm_state.h"

struct redis_client;

#define LREDIS_CLIENT_METATABLE "srv.redis.Client"

struct lredis_client {
    struct handle        handle;
    struct redis_client *client; /* NULL: closed, or the VM goes */
};

/* Adds `subscribe` to the module on top (bind/lredis.h). */
void lredis_sub_add(lua_State *L);

#endif
