/* data/pg_url.h - where a PostgreSQL server is and how to log in, from "postgres://user@host/db?...",
 * as libpq reads it: its parameters, PG* variables and ~/.pgpass hold. */
#ifndef DATA_PG_URL_H
#define DATA_PG_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct addr;
struct err;
struct pg_conn;
struct pg_lib;
struct _PQconninfoOption;

enum { PG_URL_HOSTS_MAX = 8 };

struct pg_url {
    const struct pg_lib      *lib;
    struct _PQconninfoOption *options; /* owned, libpq's */
    /* What the loop has to look up, since libpq would block; NULL: an address or a Unix socket. */
    char    *host; /* owned */
    uint16_t port;
};

/* ERR_INVALID: the text says what libpq did not like. */
int  pg_url_parse(struct pg_url *out, const struct pg_lib *lib, const char *text, struct err *err);
void pg_url_fini(struct pg_url *url);

/* PQconnectStart(). COUNT addresses stand for `host`, to be tried in turn. NULL: no memory. */
struct pg_conn *pg_url_connect(const struct pg_url *url, const struct addr *addrs, unsigned count);

#endif
