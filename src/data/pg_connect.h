/* data/pg_connect.h - to a connection that is set up: looks the name up, lets libpq connect (TLS,
 * SCRAM), sets the session, within one time limit. Nothing of it blocks but the arithmetic of
 * SCRAM (some 3 ms). */
#ifndef DATA_PG_CONNECT_H
#define DATA_PG_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/fault.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dns.h"

struct dns;
struct pg_conn;
struct pg_lib;
struct pg_result;
struct pg_url;

enum { PG_CONNECT_MS = 2000 };

/* In its owner's memory. */
struct pg_connect {
    const struct pg_lib *lib;
    const struct pg_url *url; /* borrowed */
    struct loop         *loop;
    struct dns_query     query;
    struct pg_conn      *pq; /* owned, until done() */
    struct io            io;
    short                wanted; /* what connectPoll() waits for */
    bool                 setting_up;
    struct timer         limit;
    struct later         begin;
    uint64_t             statement_ms;

    /* From the loop's turn, once, unless pg_connect_cancel() came before. `pq` is the callee's,
     * ready, non-blocking and in no pipeline, or NULL: then `fault` is set. */
    void (*done)(struct pg_connect *connect);
    struct fault fault; /* later on: the server's last words */
    bool         timed_out;
    unsigned     pid; /* of the process that serves us */
};

/* Zeroed memory with `done` set. STATEMENT_MS: the session's statement_timeout, 0: none. */
void pg_connect_start(struct pg_connect *connect, const struct pg_lib *lib,
                      const struct pg_url *url, struct dns *dns, struct loop *loop,
                      uint64_t statement_ms);
/* An error of the server's, later on: if that closes the connection, `fault` says why. */
void pg_connect_note(struct pg_connect *connect, const struct pg_result *error);
void pg_connect_cancel(struct pg_connect *connect); /* idempotent */

#endif
