/* bind/lbody.h - the request's body: as a whole, or as it comes. */
#ifndef BIND_LBODY_H
#define BIND_LBODY_H

#include <lua.h>

struct lcall;

/* The wire has more of the body, or its end: what waits for it is looked at. From the loop's turn. */
void lbody_came(struct lcall *call);

/* Adds has_body, body_state, read_body, decode_body, open_stream, read_some and is_utf8 to the module on top. */
void lbody_register(lua_State *L);

#endif
