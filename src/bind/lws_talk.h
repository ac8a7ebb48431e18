/* bind/lws_talk.h - what Lua says and hears on a socket: send, receive, close. */
#ifndef BIND_LWS_TALK_H
#define BIND_LWS_TALK_H

#include <lua.h>

#include "base/str.h"

struct lws;

/* Begins to close; nothing that comes is for Lua any more. Idempotent. */
void lws_talk_close(struct lws *socket, unsigned code, struct str reason);

/* How it ended, or ends by us: for close_code. */
void lws_talk_note_end(struct lws *socket, unsigned code, struct str reason);
int  lws_talk_push_end(lua_State *L, const struct lws *socket); /* code, reason; returns 2 */

/* Pushes the message that was kept and "text" or "binary"; returns 2. It is forgotten. */
int  lws_talk_push_kept(lua_State *L, struct lws *socket);
void lws_talk_forget(struct lws *socket);

/* --- news for who waits --------------------------------------------------------------------------- */

void lws_talk_message(struct lws *socket); /* one has been kept */
void lws_talk_room(struct lws *socket);
void lws_talk_over(struct lws *socket); /* it closes */
void lws_talk_closed(struct lws *socket);

/* Adds `send`, `receive`, `close` and `state` to the module on top. */
void lws_talk_register(lua_State *L);

#endif
