/* bind/lredis.h - Redis for lua/srv/db: clients, leases and subscriptions as Lua objects. */
#ifndef BIND_LREDIS_H
#define BIND_LREDIS_H

#include <lua.h>

/* srv.core.redis. Misuse is raised, blamed on the innermost line that is not srv's own.
 *
 *     open(url, { timeout, connect, queue, pool }) -> client | nil, err    milliseconds; does not wait
 *     client:call(command, ...) -> reply | nil, err
 *     client:batch(commands) -> replies | nil, err     each { command, ... }: side by side, in one
 *                                                      write; faults of Redis are error objects
 *     client:place() -> "127.0.0.1:6379"
 *     client:close()
 *     lease() -> lease                       a connection that stays with the task until it ends
 *     lease:batch(client, commands, last) -> replies | nil, err      LAST: it is given back then
 *     lease:close()                          closes the connection, whatever was begun on it
 *     subscribe(client, is_pattern, words) -> subscription
 *     subscription:confirm() -> true | nil, err
 *     subscription:receive([seconds]) -> text, channel, pattern|nil | nil (closed) | nil, err
 *     subscription:close()
 *     bus(client, prefix) -> bus                       what is published elsewhere comes to srv.core.bus
 *     bus:publish(topic, v)                            to the other processes only; does not wait
 *     bus:stats() -> { hears, up, sent, unsent, heard }
 *     encode(v, where) -> string | nil, err            as Redis keeps a value of srv.cache
 *     decode(string) -> v | nil                        nil: another version of srv has written it
 *     stats() -> { connections, pending, calls, lost }                             this worker's */
int lredis_open(lua_State *L);

#endif
