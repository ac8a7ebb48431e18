/* bind/lws_rules.h - what is the same for all sockets of one app:ws(), made while the app loads. */
#ifndef BIND_LWS_RULES_H
#define BIND_LWS_RULES_H

#include <lua.h>

struct lws_rules;

struct lws_rules *lws_rules_check(lua_State *L, int index);

/* Adds `rules` to the module on top. */
void lws_rules_register(lua_State *L);

#endif
