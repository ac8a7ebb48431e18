/* bind/env.h - what a worker lends to the Lua modules written in C: found by env_of(L). */
#ifndef BIND_ENV_H
#define BIND_ENV_H

#include <stdbool.h>

#include <lua.h>

#include "base/str.h"

struct arena_pool;
struct bus;
struct bus_port;
struct children;
struct chunks;
struct dns;
struct dicts;
struct http_client;
struct lane;
struct lhttp;
struct log;
struct loop;
struct lws_worker;
struct metrics;
struct metrics_shard;
struct pg_worker;
struct pool;
struct ports;
struct redis;
struct redis_hearing;
struct sched;
struct sources;
struct sqlite;
struct temps;
struct tls;
struct udp_ports;

enum setting_kind {
    SETTING_TEXT,
    SETTING_SWITCH,   /* "true" or "false" */
    SETTING_COUNT,    /* a whole number */
    SETTING_DURATION, /* number: seconds */
    SETTING_BYTES,
    SETTING_SIZES,    /* text: "name=size,name=size" */
    SETTING_NETWORKS, /* text: "loopback,10.0.0.0/8" */
    SETTING_FILES,    /* text: "a.pem,b.pem" */
    SETTING_PORT,     /* number: -1 is none */
};

/* One setting of the server as srv.config shows it. */
struct setting {
    const char       *name; /* "body_limit" */
    enum setting_kind kind;
    const char       *text;   /* as it was given */
    double            number; /* COUNT, BYTES, DURATION in seconds, SWITCH 0 or 1 */
    const char       *origin; /* "--body-limit", "SRV_BODY_LIMIT", "config.lua", "default" */
};

/* One for each VM; filled by the worker (or by `srv test`), borrowed by the VM. */
struct env {
    struct loop       *loop;
    struct sched      *sched;
    struct arena_pool *arenas;
    struct pool       *pool;
    struct lane       *lane_file; /* blocking file system calls */
    struct lane       *lane_cpu;  /* hashes, big compressions */
    struct lane       *lane_sqlite;
    struct temps      *temps;     /* the process's temporary files (base/temps.h) */
    struct children   *children;  /* processes that apps start (ev/child.h); NULL: none lent */
    struct dns        *dns;       /* this worker's */
    struct ports      *ports;     /* listening sockets of apps, the process's */
    struct udp_ports  *udp_ports; /* the same for UDP (net/udp_ports.h) */
    /* Connections that the app serves beside requests (env_guest_enter()): a generation waits for their
     * end, as it does for that of requests. */
    unsigned guest_count;
    void (*on_no_guests)(struct env *env); /* NULL: nobody waits */
    struct tls           *tls;             /* this worker's, both sides (net/tls.h) */
    struct http_client   *client;          /* this worker's connections to other servers */
    struct lws_worker    *sockets;         /* this worker's WebSockets (bind/lws_worker.h) */
    struct dicts         *dicts;           /* the process's shared dictionaries (data/dict.h) */
    struct bus           *bus;             /* the process's (data/bus.h) */
    struct bus_port      *bus_port;        /* this worker's end of it */
    struct redis         *redis;         /* this worker's (data/redis.h); NULL: srv.redis says so */
    struct redis_hearing *redis_hearing; /* the process's (data/redis_bus.h) */
    struct sources *sources; /* what else the app is made of (bind/sources.h); NULL: nobody looks */
    struct chunks  *chunks;  /* compiled Lua files (bind/chunks.h); NULL: each VM compiles */
    struct sqlite  *sqlite;  /* the process's databases (data/sqlite.h); NULL: srv.db says so */
    struct pg_worker     *pg;            /* this worker's (data/pg.h); NULL: srv.db says so */
    struct log           *log;           /* NULL in unit tests */
    struct metrics       *metrics;       /* the process's (base/metrics.h) */
    struct metrics_shard *metrics_shard; /* this worker's */
    struct lhttp         *http;          /* NULL where there is no server */
    /* The id of the request that the running code works for, empty when there is none; for the
     * log. NULL: no requests here. Must not raise. */
    struct str (*request_id)(lua_State *L);
    const char *app_root; /* absolute path of the app's folder */
    bool        dev;
    bool        under_test; /* specs run here: they may hold the clock */
    unsigned    worker_id;  /* 0-based */
    unsigned    worker_count;
    unsigned    generation;
    const bool *draining; /* the worker takes no new work; NULL: that never happens here */

    const char           *version;  /* of the server: "0.1.0"; NULL: not known */
    const struct setting *settings; /* borrowed from the server's configuration */
    unsigned              setting_count;
};

struct env *env_of(lua_State *L);

/* A connection is served that outlives its request; it has ended. */
void env_guest_enter(struct env *env);
void env_guest_leave(struct env *env);

#endif
