/* bind/ltag.h - an ETag of what is in a body, made when the body is known to its last byte.
 *
 * That is behind all hooks and the JSON encoder, so no plugin has to come before or after another one. Only
 * a 200 to GET or HEAD gets one; a tag that the app has set stays, and streams and files are not looked at. */
#ifndef BIND_LTAG_H
#define BIND_LTAG_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct lcall;

/* Whether the call's conditions cannot be answered before its body is there. */
bool ltag_waits_for_body(const struct lcall *call);

/* Sets the ETag of BODY if the call wants one; true: a condition of the request answers it without the
 * body, and the status says so. */
bool ltag_settles(struct lcall *call, struct str body);

/* Adds `tag_body` to the module on top. */
void ltag_register(lua_State *L);

#endif
