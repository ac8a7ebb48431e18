#include "bind/lredis_client.h"

#include <string.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lstr.h"
#include "data/redis.h"
#include "data/redis_conn.h"
#include "vm/vm.h"

#define CLIENT_METATABLE "srv.redis.Client"

struct lredis_client {
    struct handle        handle;
    struct redis_client *client; /* NULL: closed, or the VM goes */
};

static void close_client(struct lredis_client *lclient)
{
    struct redis_client *client = lclient->client;

    lclient->client = NULL;
    if (client)
        redis_client_let_go(client);
}

static void cut_client(struct handle *handle)
{
    close_client(container_of(handle, struct lredis_client, handle));
}

/* open(url, { timeout, connect, queue, pool }) -> client | nil, err */
static int open_client(lua_State *L)
{
    struct env           *env = env_of(L);
    struct redis_options  options;
    struct lredis_client *lclient;
    struct err            err;
    struct str            url = lstr_check(L, 1);

    memset(&options, 0, sizeof(options));
    if (redis_url_parse(&options.target, url, &err) != 0)
        return lerror_nil(L, err.code == ERR_UNSUPPORTED ? "tls" : "invalid", "%s", err.text);
    options.timeout_ms = (uint64_t)lfield_number(L, 2, "timeout");
    options.connect_ms = (uint64_t)lfield_number(L, 2, "connect");
    options.queue      = (uint32_t)lfield_number(L, 2, "queue");
    options.pool       = (uint32_t)lfield_number(L, 2, "pool");
    if (!env->redis)
        return lerror_nil(L, "unavailable", "no Redis is lent to this VM");
    lclient             = lclass_new(L, CLIENT_METATABLE, sizeof(*lclient));
    lclient->handle.cut = cut_client;
    list_init(&lclient->handle.link);
    lclient->client = redis_client_get(env->redis, &options);
    if (!lclient->client)
        return luaL_error(L, "not enough memory");
    handle_link(&lclient->handle, vm_of(L));
    return 1;
}

struct redis_client *lredis_check_client(lua_State *L, int index)
{
    struct lredis_client *lclient = luaL_checkudata(L, index, CLIENT_METATABLE);

    if (!lclient->client)
        lerror_misuse(L, "srv.redis: the client is closed");
    return lclient->client;
}

/* client:close() */
static int client_close(lua_State *L)
{
    struct lredis_client *lclient = luaL_checkudata(L, 1, CLIENT_METATABLE);

    handle_unlink(&lclient->handle);
    close_client(lclient);
    return 0;
}

/* client:place() -> "127.0.0.1:6379" */
static int client_place(lua_State *L)
{
    lua_pushstring(L, redis_client_place(lredis_check_client(L, 1))->name);
    return 1;
}

/* --- the module -------------------------------------------------------------------------------------------- */

void lredis_client_add(lua_State *L, const luaL_Reg *methods)
{
    static const luaL_Reg OWN[] = { { "place", client_place },
                                    { "close", client_close },
                                    { "__gc", client_close },
                                    { NULL, NULL } };

    lclass_push(L, CLIENT_METATABLE, OWN, 0);
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 1);
    lua_pushcfunction(L, open_client);
    lua_setfield(L, -2, "open");
}
