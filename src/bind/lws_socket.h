/* bind/lws_socket.h - a socket's life in Lua: its tasks, one after the other, and its end.
 *
 * The linear form is one task from the upgrade on, which takes messages when it asks for them. The form with a
 * table has a task for each event, so an idle socket has no coroutine. A client's socket has no task
 * here: whoever opened it works with it. */
#ifndef BIND_LWS_SOCKET_H
#define BIND_LWS_SOCKET_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct channel;
struct lws;
struct lws_rules;
struct ws_options;

/* Pushes a socket that is not open yet, in so many BYTES, which begin with it. Raises for lack of memory. */
struct lws *lws_socket_new(lua_State *L, size_t bytes, struct lws_rules *rules);

/* The one at INDEX of L is the registry's until its end; raises for lack of memory, so it comes before all that
 * cannot be undone. */
void lws_socket_hold(struct lws *socket, lua_State *L, int index);
/* It was never opened. */
void lws_socket_drop(struct lws *socket);

/* Takes CHANNEL. False: no memory, and it is cut. */
bool lws_socket_open(struct lws *socket, struct channel *channel, const struct ws_options *options);
/* Its handler begins. */
void lws_socket_start(struct lws *socket);

/* The id of the request that the running code's socket began with; STR_NONE: it works for none. */
struct str lws_socket_request_id(lua_State *L);

/* Adds the class to the module on top, as `WebSocket`, for Lua to complete. */
void lws_socket_register(lua_State *L);

#endif
