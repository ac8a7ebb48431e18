/* bind/lws_rules.h - what is the same for all sockets of one app:ws(), made while the app loads. */
#ifndef BIND_LWS_RULES_H
#define BIND_LWS_RULES_H

#include <lua.h>

#include "base/str.h"

struct lws_rules;

struct lws_rules *lws_rules_check(lua_State *L, int index);

/* One more holder, one less. */
struct lws_rules *lws_rules_keep(struct lws_rules *rules);
void              lws_rules_let_go(struct lws_rules *rules);

/* Where NAME stands among their protocols; -1: nowhere. */
int lws_rules_protocol(const struct lws_rules *rules, struct str name);

/* Adds `rules` to the module on top. */
void lws_rules_register(lua_State *L);

#endif
