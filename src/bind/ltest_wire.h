/* bind/ltest_wire.h - the wire of srv.test: a request from memory, its answer into memory.
 *
 * The same exchanges as on a socket (http/exchange.h). Private to srv.test's modules. */
#ifndef BIND_LTEST_WIRE_H
#define BIND_LTEST_WIRE_H

#include <stdbool.h>

#include <lua.h>

#include "base/buf.h"
#include "base/str.h"
#include "ev/loop.h"
#include "net/addr.h"

struct channel;
struct env;
struct exchange;
struct lhttp;
struct lsite;
struct task;

/* One request and what comes of it. Freed by the last of three: the exchange's work, the task that
 * waits, and our own turn in the loop. */
struct test_wire {
    struct exchange *ex; /* NULL once both sides have let go */
    struct lhttp    *http;
    struct lsite    *site;
    struct task     *waiter;  /* NULL: it was cancelled, or has its answer */
    bool             streams; /* waiter is woken by each piece, and takes it out of `answer` */
    struct later     turn;    /* events go up from there */
    struct addr      peer;
    struct channel
              *channel; /* the client's end, once the request was upgraded; NULL: it was taken */
    struct str body;    /* of the request, what has not been delivered; in the arena */

    unsigned   status;
    struct buf head;    /* "name\0value\n" for each field */
    struct buf answer;  /* the body */
    struct buf pieces;  /* its pieces' lengths: size_t each */
    struct buf interim; /* statuses: unsigned each */

    bool dispatched : 1;
    bool wants_body : 1;
    bool wants_room : 1;
    bool over : 1;   /* the answer is complete or cut */
    bool cut : 1;    /* it is cut */
    bool left : 1;   /* whoever waited was cancelled: the client has gone */
    bool let_go : 1; /* the work has */
};

/* A request to the site at 1 as the table at 2 says: { method, target, host, headers, body, ip, tls, body_limit }.
 * It is dispatched in the loop's turn. Raises on misuse. */
struct test_wire *ltest_wire_new(lua_State *L);

/* The client goes: to the app it has left, unless its answer is complete. Gives WIRE up. */
void ltest_wire_leave(struct test_wire *wire);
/* The answer was taken. Only when wire->ex is NULL. */
void ltest_wire_free(struct test_wire *wire);

/* The client's end of what an upgrade has made is the caller's from now on; NULL: there is none. */
struct channel *ltest_wire_take_channel(struct test_wire *wire);

/* Pushes the array of { name, value } of the answer's fields so far. */
void ltest_wire_push_fields(lua_State *L, const struct test_wire *wire);
/* How many pieces of the body are there, and the length of the first. */
size_t ltest_wire_pieces(const struct test_wire *wire, size_t *first_len);
/* The first has been read: makes room for more. */
void ltest_wire_drop_piece(struct test_wire *wire);

#endif
