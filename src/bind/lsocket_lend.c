#include "bind/lsocket_lend.h"

#include <lauxlib.h>

#include "bind/lsocket_state.h"
#include "http/stream_channel.h"

static void on_released(struct stream *stream, void *arg)
{
    struct lsocket *s = arg;

    s->lent = NULL;
    stream_fini(stream);
    luaL_unref(s->L, LUA_REGISTRYINDEX, s->self_ref);
}

void lsocket_take_back(struct lsocket *s)
{
    if (!s->lent)
        return;
    stream_channel_close(s->lent);
    stream_fini(&s->stream);
    s->lent = NULL;
}

struct channel *lsocket_lend(lua_State *L, int index, struct str early)
{
    struct lsocket *s = luaL_checkudata(L, index, LSOCKET_METATABLE);

    if (!s->open || s->in.task || s->out.task)
        return NULL;
    lua_pushvalue(L, index);
    s->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    s->L        = vm_of(L)->L;
    s->lent     = stream_channel_new(&s->stream, early, on_released, s);
    s->open     = !s->lent;
    if (!s->lent)
        luaL_unref(L, LUA_REGISTRYINDEX, s->self_ref);
    return s->lent;
}
