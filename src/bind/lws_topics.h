/* bind/lws_topics.h - sockets that hear what srv.bus carries.
 *
 * Each subscribes for itself, so none gets what was on its way before; a worker makes one frame of a message for
 * all of them. A text goes as it is, anything else as JSON; a string that is no UTF-8 goes as binary.
 * A socket whose buffer is full does not get it, or is closed with 1013 (`overflow`). */
#ifndef BIND_LWS_TOPICS_H
#define BIND_LWS_TOPICS_H

#include <lua.h>

struct lws;
struct lws_worker;

/* The socket hears nothing any more. */
void lws_topics_leave_all(struct lws *socket);

void lws_topics_open(struct lws_worker *worker);
void lws_topics_close(struct lws_worker *worker); /* no socket is left */

/* Adds `subscribe`, `unsubscribe` and `serial` to the module on top. */
void lws_topics_register(lua_State *L);

#endif
