/* bind/lend.h - what a process lends to the VMs of all its workers, and what each worker adds of its
 * own: opened, closed and put into an env in one place, for the server, `srv test` and specs alike.
 *
 * The order of closing: each worker's VMs, lend_worker_close(), and when all of that is done
 * lend_close(); the loops go last, since jobs come home to them. */
#ifndef BIND_LEND_H
#define BIND_LEND_H

#include "bind/lend_metrics.h"

struct bus;
struct bus_port;
struct dicts;
struct dns;
struct children;
struct env;
struct err;
struct http_client;
struct lane;
struct loop;
struct lws_worker;
struct metrics;
struct metrics_shard;
struct pg;
struct pg_worker;
struct pool;
struct ports;
struct redis;
struct redis_hearing;
struct sources;
struct sqlite;
struct temps;
struct tls;
struct udp_ports;

/* The process's; safe for all threads. */
struct lend {
    struct pool          *pool;
    struct lane          *lane_file, *lane_cpu, *lane_sqlite;
    struct temps         *temps;
    struct sqlite        *sqlite;
    struct pg            *pg;
    struct ports         *ports;
    struct udp_ports     *udp_ports;
    struct dicts         *dicts;
    struct bus           *bus;
    struct sources       *sources;
    struct redis_hearing *redis_hearing; /* between it and other machines */
    struct metrics       *metrics;       /* closed last: collectors of all others are in it */
    struct lend_metrics   numbers;
};

/* One worker's; its thread's alone. */
struct lend_worker {
    struct loop          *loop; /* borrowed */
    struct bus_port      *bus_port;
    struct metrics_shard *metrics_shard; /* the registry's */
    struct dns           *dns;
    struct tls           *tls; /* what its TLS connections share, both sides */
    struct pg_worker     *pg;
    struct http_client   *client;
    struct lws_worker    *sockets;
    struct redis         *redis;
    struct children      *children;
};

/* Zeroed memory before. After an error, close what was opened. */
int  lend_open(struct lend *lend, struct err *err);
void lend_close(struct lend *lend);

int  lend_worker_open(struct lend_worker *own, const struct lend *lend, struct loop *loop,
                      struct err *err);
void lend_worker_close(struct lend_worker *own);

/* Sets the fields of ENV that stand for these, and no others. */
void lend_to(struct env *env, const struct lend *lend, const struct lend_worker *own);

#endif
