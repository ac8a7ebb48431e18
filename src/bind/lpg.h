/* bind/lpg.h - PostgreSQL for lua/srv/db: databases and leases as Lua objects. */
#ifndef BIND_LPG_H
#define BIND_LPG_H

#include <lua.h>

/* srv.core.pg. TIMEOUT is in milliseconds; 0: none, in a lease. LEASE is an open one or nil.
 * "Outcome" stands for: the result | nil, err | refused, message, as in bind/lsqlite.h.
 *
 *     open(url, connections, waiting, timeout) -> db | nil, err   does not wait
 *     db:query(lease, timeout, sql, ...) -> outcome                rows
 *     db:one(...) db:value(...) -> outcome                         no_row where there is none
 *     db:exec(...) -> outcome                                      number of changed rows
 *     db:close()
 *     lease() -> lease
 *     lease:begin(db, "write"|"read"|"migrate"|"none", timeout, [isolation]) -> outcome: true
 *     lease:commit(timeout) lease:rollback(timeout) -> outcome: true
 *     lease:mark("set"|"release"|"undo", depth, timeout) -> outcome: true
 *     lease:script(sql, timeout) -> outcome: true
 *     lease:command(sql, timeout) -> outcome: true        a text of ours: any statement
 *     lease:is_open() -> boolean
 *     lease:close([spoiled])                              at once: rolled back behind our back
 *     lease:listen() -> true                              notes are kept from here on
 *     lease:note() -> text | nil, err                     waits for one
 *     lease:copy(sql, timeout) -> outcome: true           up to where data flows
 *     lease:copy_write(text) -> boolean | nil, err        false: the server takes no more
 *     lease:copy_read() -> text | nil: the end | nil, err | nil, nil, true: again
 *     lease:copy_end([error]) -> outcome: number of rows
 *     reads(sql) -> boolean                               a cursor can be declared for it
 *     blob(s) -> s as bytes
 *     stats() -> { open, idle, leased, connecting, waiting, in_flight, ... } of this worker
 *     refused */
int lpg_open(lua_State *L);

#endif
