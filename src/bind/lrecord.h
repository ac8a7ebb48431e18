/* bind/lrecord.h - what a handler has returned or recorded, held until its runner ends. */
#ifndef BIND_LRECORD_H
#define BIND_LRECORD_H

#include <lua.h>

struct lcall;

/* Notes the app's line that answers, for when a second answer comes. */
void lrecord_note_where(struct lcall *call, lua_State *L);

/* Pushes and returns what a second answer is told: both places. One that was returned has no line
 * any more, so its route is named. */
const char *lrecord_push_twice(const struct lcall *call, lua_State *L);

/* Adds `record` and what asks for it to the module on top. */
void lrecord_register(lua_State *L);

#endif
