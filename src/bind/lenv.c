#include "bind/lenv.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "bind/env.h"
#include "bind/lfield.h"
#include "bind/lstr.h"
#include "ev/loop.h"

/* getenv(name) -> string | nil */
static int lenv_getenv(lua_State *L)
{
    lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
    return 1;
}

/* A table: bytes by name. */
static void push_sizes(lua_State *L, struct str text)
{
    struct str name;
    uint64_t   bytes;

    lua_newtable(L);
    while (units_next_size(&text, &name, &bytes)) {
        lstr_push(L, name);
        lua_pushnumber(L, (double)bytes);
        lua_rawset(L, -3);
    }
}

static void push_list(lua_State *L, struct str text)
{
    struct str element;

    lua_newtable(L);
    for (int i = 1; str_next(&text, ',', &element); i++) {
        lstr_push(L, element);
        lua_rawseti(L, -2, i);
    }
}

/* false: none. */
static void push_port(lua_State *L, double port)
{
    if (port < 0)
        lua_pushboolean(L, false);
    else
        lua_pushnumber(L, port);
}

static void push_setting(lua_State *L, const struct setting *setting)
{
    switch (setting->kind) {
    case SETTING_TEXT: lua_pushstring(L, setting->text); break;
    case SETTING_SWITCH: lua_pushboolean(L, setting->number != 0); break;
    case SETTING_COUNT:
    case SETTING_DURATION:
    case SETTING_BYTES: lua_pushnumber(L, setting->number); break;
    case SETTING_SIZES: push_sizes(L, str_of(setting->text)); break;
    case SETTING_FILES:
    case SETTING_NETWORKS: push_list(L, str_of(setting->text)); break;
    case SETTING_PORT: push_port(L, setting->number); break;
    }
}

/* settings() -> table: a value for each name, durations in seconds */
static int lenv_settings(lua_State *L)
{
    const struct env *env = env_of(L);

    lua_createtable(L, 0, (int)env->setting_count);
    for (unsigned i = 0; i < env->setting_count; i++) {
        push_setting(L, &env->settings[i]);
        lua_setfield(L, -2, env->settings[i].name);
    }
    return 1;
}

/* now() -> seconds since 1970, UTC */
static int now(lua_State *L)
{
    lua_pushnumber(L, (double)loop_wall_ms(env_of(L)->loop) / 1000);
    return 1;
}

/* monotonic() -> seconds since some moment before the start */
static int monotonic(lua_State *L)
{
    lua_pushnumber(L, (double)loop_clock_ns(env_of(L)->loop) / 1e9);
    return 1;
}

/* http_date(seconds) -> "Sun, 06 Nov 1994 08:49:37 GMT" */
static int http_date(lua_State *L)
{
    char date[CLOCK_HTTP_DATE_LEN];

    clock_http_date(date, (int64_t)luaL_checknumber(L, 1));
    lua_pushlstring(L, date, sizeof(date));
    return 1;
}

/* stop(): the process drains and ends, as on SIGTERM; specs go on */
static int stop(lua_State *L)
{
    if (!env_of(L)->under_test)
        kill(getpid(), SIGTERM);
    return 0;
}

/* is_draining() -> boolean: the process ends when what it has is answered */
static int is_draining(lua_State *L)
{
    const bool *draining = env_of(L)->draining;

    lua_pushboolean(L, draining && *draining);
    return 1;
}

static void push_worker(lua_State *L, const struct env *env)
{
    lua_createtable(L, 0, 4);
    lfield_set_number(L, "id", env->worker_id);
    lfield_set_number(L, "count", env->worker_count);
    lfield_set_number(L, "pid", getpid());
    lfield_set_number(L, "generation", env->generation);
}

int lenv_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "getenv", lenv_getenv },
        { "settings", lenv_settings },
        { "now", now },
        { "monotonic", monotonic },
        { "http_date", http_date },
        { "stop", stop },
        { "is_draining", is_draining },
        { NULL, NULL },
    };
    const struct env *env = env_of(L);

    lua_createtable(L, 0, 10);
    luaL_register(L, NULL, FUNCTIONS);
    lua_pushstring(L, env->app_root);
    lua_setfield(L, -2, "root");
    lua_pushstring(L, env->version);
    lua_setfield(L, -2, "version");
    lfield_set_bool(L, "dev", env->dev);
    push_worker(L, env);
    lua_setfield(L, -2, "worker");
    return 1;
}
