/* bind/lcall_table.h - one request in the hands of Lua, from its dispatch to the last byte of its
 * answer, and the table of a worker's.
 *
 * Lua knows a call by a number, slot and sequence in one, that lies in the tables `req` and `res`.
 * So those tables are made without asking C, may be kept by the app for ever, and speak of an
 * ended request as such. A call ends when its tasks are over and the wire has said its last word:
 * whoever sets the last of these conditions settles it (bind/lhttp_dispatch.c). Belongs to the worker's thread. */
#ifndef BIND_LCALL_TABLE_H
#define BIND_LCALL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/rand.h"
#include "http/exchange.h"
#include "http/route.h"

struct lbody_decoder;
struct lcall_table;
struct lcoder;
struct lcoding_rules;
struct lfile;
struct lhead_list;
struct lhttp;
struct lroute;
struct lsite;
struct task;

enum {
    LCALL_SLOTS = 1 << 20, /* calls at once; the factor of the sequence in a call's number */
};

/* What res holds as the answer. */
enum lcall_recorded {
    RECORDED_NOTHING,
    RECORDED_EMPTY,  /* a status alone */
    RECORDED_TEXT,   /* a string */
    RECORDED_JSON,   /* a value to be encoded */
    RECORDED_STREAM, /* a function or a reader, which Lua pumps */
    RECORDED_FILE,   /* lcall.file */
    RECORDED_SOCKET, /* a WebSocket, or one that is passed on, which begins when the answer goes out */
};

/* Lua values that belong to a call: places in the VM's table of anchors. */
enum lcall_anchor {
    ANCHOR_RECORDED,
    ANCHOR_BODY,     /* the request's body, once it was read as a whole */
    ANCHOR_REQUEST,  /* the view that the app hung something on */
    ANCHOR_RESPONSE, /* the same */
    ANCHOR_PLAN,     /* of a path that no route takes */
    ANCHOR_COUNT,
};

struct lcall {
    struct list      of_site; /* in site->calls */
    struct exchange *ex;
    struct lhttp    *http;
    struct lsite    *site; /* NULL once its VM has gone */
    uint32_t         slot, seq;

    /* From here to `found` a new call is all zero. */
    unsigned anchors; /* bit 1 << ANCHOR_...: what is kept in Lua for us */

    /* tasks */
    unsigned     tasks; /* that have not ended: the runner's, formatters, hooks */
    struct task *task;  /* the runner's, NULL once it is over */

    /* the match */
    struct lroute *route; /* NULL: no route takes the path */
    unsigned       param_count;
    unsigned       host; /* index of the site's host that matched */

    /* the answer */
    enum lcall_recorded recorded;
    unsigned            status; /* 0: not set */
    struct field       *fields; /* in the exchange's arena, as is all below */
    unsigned            field_count, field_room;
    struct str          type;       /* Content-Type; at NULL: the recorded kind's own */
    const char         *where_file; /* the app's line that recorded it; NULL: a returned value */
    int                 where_line;
    struct lfile       *file;                 /* of RECORDED_FILE */
    const struct lhead_list    *defaults;     /* fields of a plugin; an inner one replaces them */
    const struct lcoding_rules *coding_rules; /* NULL: it goes out as it is */
    struct str ready;         /* the finished body, coded or encoded; at NULL: none so far */
    uint32_t   tag_bytes_max; /* a body up to this gets an ETag; 0: none does */

    /* what leaves or comes in pieces */
    struct str            rest; /* not taken by the wire yet; its owner is kept alive elsewhere */
    struct buf           *encoded; /* a JSON text, or a coded body, that did not fit in one piece */
    struct lcoder        *coder;   /* of a stream that is coded; NULL once it has ended */
    struct buf           *body;    /* request body so far */
    struct lbody_decoder *decoder; /* it comes compressed */
    struct task          *reader;  /* waits for request body */
    struct task          *writer;  /* waits for room, or its write has not come back yet */
    struct task          *ender;   /* waits for what the writer has begun */
    struct str            trailers; /* their names as announced; at NULL: none */
    struct str            id;       /* at NULL: nobody has asked for it so far */

    bool reads_all : 1;    /* the reader waits for all of it */
    bool streams_body : 1; /* it is handed out in pieces: nothing else can read it */
    bool tags_weakly : 1;
    bool finishes : 1; /* as the route says, or the plan of a path without one */
    bool wants_sent : 1;
    bool wants_abort : 1;
    bool committed : 1; /* the head is out */
    bool events : 1;    /* of a stream whose client comes back by itself: it may end at any time */
    bool woken : 1;     /* the writer was told that there is room */
    bool ending : 1;    /* the handler has returned: nobody begins to write any more */
    bool ended : 1;     /* the last of the answer was handed over */
    bool failing : 1;   /* an answer to an error is being made */
    bool gone : 1;      /* the wire has gone */
    bool sent : 1;      /* the wire is done */
    bool told : 1;      /* `finished` was told of it */

    /* Set before they are looked at: not cleared from here on. */
    enum route_found found;
    int              rank;                 /* for the next match */
    int              next_ref;             /* what the next task runs */
    uint64_t         allowed;              /* NO_METHOD: the path's methods */
    struct str      *params;               /* in the exchange's arena */
    uint64_t         announced;            /* length of a streamed body, or ANSWER_LENGTH_UNKNOWN */
    uint64_t         written_from;         /* ex->sent_bytes when the writer's chunk began */
    const char      *reason;               /* why its runner was cancelled */
    char             made_id[RAND_ID_LEN]; /* what `id` is unless one was given */
};

/* --- the table of a worker's calls ----------------------------------------------------------- */

struct lcall_table *lcall_table_new(void); /* ends the process without memory, as arenas do */
/* No call may be left. */
void lcall_table_free(struct lcall_table *table);

/* A cleared call in a slot of its own. NULL: LCALL_SLOTS are in use. */
struct lcall *lcall_take(struct lcall_table *table);
void          lcall_give(struct lcall_table *table, struct lcall *call);

double lcall_number(const struct lcall *call);
/* NULL: that one has ended. */
struct lcall *lcall_find(const struct lcall_table *table, double number);
/* Whether MEMORY is a live call of the table: tells a request's task from others by its arg. */
struct lcall *lcall_at(const struct lcall_table *table, const void *memory);

#endif
