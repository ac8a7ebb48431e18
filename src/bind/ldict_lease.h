/* bind/ldict_lease.h - methods of a shared dictionary that wait: for a change, and for the right to
 * compute a value. */
#ifndef BIND_LDICT_LEASE_H
#define BIND_LDICT_LEASE_H

#include <lua.h>

/* dict:wait(key, [t], [seen]) -> v | nil, err: the value after the next change; with SEEN (nil too) at
 * once if it differs from that */
int ldict_wait(lua_State *L);

/* dict:claim(key) -> lease | true | nil, err: true: look again, there may be a value */
int ldict_claim(lua_State *L);

/* The metatable of leases: lease:holds() -> boolean, lease:give_back() */
void ldict_push_lease_class(lua_State *L);

#endif
