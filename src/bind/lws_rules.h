/* bind/lws_rules.h - what is the same for all sockets of one app:ws(), made while the app loads. */
#ifndef BIND_LWS_RULES_H
#define BIND_LWS_RULES_H

#include <lua.h>

struct lws_rules;

struct lws_rules *lws_rules_check(lua_State *L, int index);

/* One more holder, one less. */
struct lws_rules *lws_rules_keep(struct lws_rules *rules);
void              lws_rules_let_go(struct lws_rules *rules);

/* Adds `rules` to the module on top. */
void lws_rules_register(lua_State *L);

#endif
