/* bind/env.h - what a worker lends to the Lua modules written in C: found by env_of(L). */
#ifndef BIND_ENV_H
#define BIND_ENV_H

#include <stdbool.h>

#include <lua.h>

struct arena_pool;
struct lane;
struct lhttp;
struct log;
struct loop;
struct pool;
struct sched;

/* One for each VM; filled by the worker (or by `srv test`), borrowed by the VM. */
struct env {
    struct loop       *loop;
    struct sched      *sched;
    struct arena_pool *arenas;
    struct pool       *pool;
    struct lane       *lane_file; /* blocking file system calls */
    struct lane       *lane_cpu;  /* hashes, big compressions */
    struct lane       *lane_sqlite;
    struct log        *log;      /* NULL in unit tests */
    struct lhttp      *http;     /* NULL where there is no server */
    const char        *app_root; /* absolute path of the app's folder */
    bool               dev;
    unsigned           worker_id; /* 0-based */
    unsigned           worker_count;
    unsigned           generation;
};

struct env *env_of(lua_State *L);

#endif
