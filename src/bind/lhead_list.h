/* bind/lhead_list.h - fields that stand on many answers (helmet's, say): looked at once, when an app makes
 * the list, so that putting them on an answer is one call that checks and copies nothing. */
#ifndef BIND_LHEAD_LIST_H
#define BIND_LHEAD_LIST_H

#include <lua.h>

/* Adds `field_list`, `set_missing`, `set_defaults` and `set_list` to the module on top. */
void lhead_list_register(lua_State *L);

#endif
