/* bind/lredis_client.h - clients as all files of bind/lredis*.c know them. */
#ifndef BIND_LREDIS_CLIENT_H
#define BIND_LREDIS_CLIENT_H

#include <lua.h>

#include "vm/vm_state.h"

struct redis_client;

#define LREDIS_CLIENT_METATABLE "srv.redis.Client"

struct lredis_client {
    struct handle        handle;
    struct redis_client *client; /* NULL: closed, or the VM goes */
};

/* The client at INDEX. Raises, blaming the caller's line, when it is closed. */
struct redis_client *lredis_check_client(lua_State *L, int index);

#endif
