/* bind/lhttp_state.h - what a worker has for its requests to Lua: its calls, the site that serves. */
#ifndef BIND_LHTTP_STATE_H
#define BIND_LHTTP_STATE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "http/codings.h"

struct exchange;
struct lcall;
struct lcall_table;
struct loop;
struct lsite;

/* One request is over: its answer is out, was cut, or nobody waits for it any more. */
struct lhttp_finished {
    const struct exchange *ex;
    const char            *route;  /* "GET /users/:id"; "" without one */
    unsigned               status; /* 499: the client left before the head */
    void                 **kept; /* a place that is the route's: NULL at first; NULL without one */
    struct lcall          *call; /* private: for lhttp_finished_id() */
};

/* Made now if nobody has asked for it before. */
struct str lhttp_finished_id(const struct lhttp_finished *finished);

struct lhttp_options {
    struct loop *loop;
    uint64_t     timeout_ms; /* where the app says nothing; 0: none */
    /* For the access log and metrics; may be NULL. */
    void (*on_finished)(const struct lhttp_finished *finished, void *arg);
    void *arg;
};

enum { LHTTP_SCRATCH_BYTES_MAX = 64 * 1024 * 1024 }; /* of one answer as JSON */

/* For bind/l*.c; above it is opaque. */
struct lhttp {
    struct lhttp_options options;
    struct lcall_table  *calls;
    struct lsite        *site; /* NULL: none serves */
    struct buf           scratch;
    struct buf           coded;                  /* the answer at hand, compressed */
    struct coding       *writers[CODINGS_COUNT]; /* to be used again; NULL: not made so far */
};

struct lhttp *lhttp_new(const struct lhttp_options *options);
/* No call may be left. NULL is fine. */
void lhttp_free(struct lhttp *http);

/* SITE goes: if it serves, none does any more. */
void lhttp_forget_site(struct lhttp *http, const struct lsite *site);
/* An empty buffer for the answer at hand. */
struct buf *lhttp_scratch(struct lhttp *http);

#endif
