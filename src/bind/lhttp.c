#include "bind/lhttp.h"

#include <lauxlib.h>

#include "bind/env.h"
#include "bind/lbody.h"
#include "bind/lcall.h"
#include "bind/lcoding.h"
#include "bind/lfile.h"
#include "bind/lhead.h"
#include "bind/lhead_list.h"
#include "bind/lhttp_test.h"
#include "bind/lpattern.h"
#include "bind/lrecord.h"
#include "bind/lrequest.h"
#include "bind/lsite.h"
#include "bind/lstream.h"
#include "bind/ltag.h"
#include "bind/lws_socket.h"
#include "vm/sched.h"
#include "vm/task.h"
#include "vm/trace.h"

struct lsite *lhttp_switch(struct lhttp *http, struct lsite *site)
{
    struct lsite *former = http->site;

    http->site = site;
    if (site)
        site->http = http;
    return former;
}

/* --- the module ------------------------------------------------------------------------------------------------------- */

struct lcall *lhttp_current(lua_State *L)
{
    struct lhttp *http    = env_of(L)->http;
    struct task  *running = sched_running(env_of(L)->sched);

    return http && running ? lcall_at(http->calls, task_arg(task_root(running))) : NULL;
}

struct str lhttp_request_id(lua_State *L)
{
    struct lcall *call = lhttp_current(L);

    return call ? lcall_id(call) : lws_socket_request_id(L);
}

/* current() -> number of the request that this code runs for, or nil */
static int current(lua_State *L)
{
    struct lcall *call = lhttp_current(L);

    if (!call)
        return 0;
    lua_pushnumber(L, lcall_number(call));
    return 1;
}

/* where() -> "app.lua:7: ", the innermost line that is not srv's own */
static int where(lua_State *L)
{
    trace_push_where(L);
    return 1;
}

/* Where Lua values of calls are kept, one table for each kind (bind/lcall.h). */
static void make_anchors(lua_State *L)
{
    lua_createtable(L, ANCHOR_COUNT, 0);
    for (int i = 1; i <= ANCHOR_COUNT; i++) {
        lua_newtable(L);
        lua_rawseti(L, -2, i);
    }
    lua_rawgeti(L, -1, ANCHOR_REQUEST + 1);
    lua_setfield(L, -3, "kept_requests");
    lua_rawgeti(L, -1, ANCHOR_RESPONSE + 1);
    lua_setfield(L, -3, "kept_responses");
    lua_setfield(L, LUA_REGISTRYINDEX, "srv.anchors");
}

int lhttp_open(lua_State *L)
{
    lua_newtable(L);
    make_anchors(L);
    lpattern_register(L);
    lsite_register(L);
    lrequest_register(L);
    lbody_register(L);
    lhead_register(L);
    lhead_list_register(L);
    ltag_register(L);
    lcoding_register(L);
    lrecord_register(L);
    lstream_register(L);
    lfile_register(L);
    lhttp_test_register(L);
    lua_pushcfunction(L, current);
    lua_setfield(L, -2, "current");
    lua_pushcfunction(L, where);
    lua_setfield(L, -2, "where");
    lua_pushinteger(L, LCALL_SLOTS);
    lua_setfield(L, -2, "slots");
    return 1;
}
