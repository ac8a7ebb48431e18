/* bind/lws_head.h - the request that a WebSocket began with, kept in one block when its exchange has ended:
 * a socket may stay for days, and many of them do nothing.
 *
 * The fields of the handshake itself (Sec-WebSocket-*, Upgrade, Connection) are not kept. */
#ifndef BIND_LWS_HEAD_H
#define BIND_LWS_HEAD_H

#include <lua.h>

#include "base/str.h"

struct lcall;
struct lws_head;

/* NULL: no memory. */
struct lws_head *lws_head_new(struct lcall *call);
void             lws_head_free(struct lws_head *head); /* NULL is fine */

/* "GET /chat", for logs and tasks; lives as long as the head. */
const char *lws_head_label(const struct lws_head *head);
/* The request's id, for the log. */
struct str lws_head_id(const struct lws_head *head);
/* Pushes { method, path, target, query, host, ip, port, id, protocol, tls, route, name, headers }. */
void lws_head_push(lua_State *L, const struct lws_head *head);

#endif
