/* bind/lpg_lease.h - the Lua class of PostgreSQL's leases. */
#ifndef BIND_LPG_LEASE_H
#define BIND_LPG_LEASE_H

#include <lua.h>

/* Makes the class; its metatable is LPG_LEASE_METATABLE. */
void lpg_lease_class(lua_State *L);
/* lease() -> lease */
int lpg_lease_new(lua_State *L);

#endif
