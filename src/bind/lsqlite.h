/* bind/lsqlite.h - SQLite for lua/srv/db: databases, leases and cursors as Lua objects. */
#ifndef BIND_LSQLITE_H
#define BIND_LSQLITE_H

#include <lua.h>

/* srv.core.sqlite. TIMEOUT is in milliseconds, 0: none; LEASE an open one or nil. "Outcome" stands
 * for: the result | nil, err | refused, message. The last is misuse, for the caller to blame on its
 * caller; without a message a __tojson stands in a parameter.
 *
 *     open(path, connections, waiting) -> db | nil, err      does not wait
 *     db:query(lease, timeout, sql, ...) -> outcome           rows
 *     db:one(...) db:value(...) -> outcome                    no_row where there is none
 *     db:exec(...) -> outcome                                 number of changed rows
 *     db:close()
 *     lease() -> lease
 *     lease:begin(db, "write"|"read"|"migrate", timeout) -> outcome: true
 *     lease:commit(timeout) lease:rollback(timeout) -> outcome: true
 *     lease:mark("set"|"release"|"undo", depth, timeout) -> outcome: true
 *     lease:script(sql, timeout) -> outcome: true
 *     lease:is_open() -> boolean
 *     cursor() -> cursor
 *     cursor:open(db, lease, timeout, sql, ...) -> outcome: rows, done
 *     cursor:fetch(timeout) -> outcome: rows, done
 *     cursor:close()
 *     blob(s) -> s as bytes
 *     refused */
int lsqlite_open(lua_State *L);

#endif
