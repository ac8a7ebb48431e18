/* bind/lws_state.h - a WebSocket in the hands of Lua, and what a worker has for all of its own.
 * Private to bind/lws*.
 *
 * A `struct lws` is a userdata, in the registry from the upgrade until the socket is closed and its
 * last task is over; it may be looked at for longer. It is tied to the ws/ws socket by that one's arg, and to
 * its VM by a handle: when either goes the other is cut from it. Worker's thread. */
#ifndef BIND_LWS_STATE_H
#define BIND_LWS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "base/list.h"
#include "ev/loop.h"
#include "ws/ws.h"
#include "vm/vm_state.h"
#include "vm/waitq.h"

struct bus_message;
struct bus_port;
struct lws;
struct lws_head;
struct task;

enum {
    LWS_TOPICS_MAX    = 1024, /* that one socket may subscribe to */
    LWS_PROTOCOLS_MAX = 16,
};

/* What a worker has for the sockets of all its VMs. */
struct lws_worker {
    struct loop      *loop;   /* borrowed, as is the port */
    struct bus_port  *port;   /* NULL: there are no topics */
    struct ws_shared *shared; /* owned */
    struct list       sockets;
    struct list       ending; /* those that are still to be told of their end, by `of_worker` too */
    struct later      more;
    unsigned          ending_code;
    struct later      forget;    /* what was made of it, */
    struct bus_message *made_of; /* the message at hand, a share; NULL: none */
    struct ws_frame    *made;    /* NULL: it cannot be sent */
    uint64_t            serial;  /* the next socket's */
    uint64_t            dropped; /* messages of topics that slow sockets did not get */
};

/* What is the same for all sockets of one app:ws(), or of one call of srv.websocket(). Each of them holds it, for the app
 * may go before its last socket. */
struct lws_rules {
    unsigned          holders;
    struct vm        *vm;
    struct ws_options options;
    bool              closes_when_full;
    bool              compresses;
    bool              is_table;    /* each event in a task of its own; else one coroutine */
    int               open_ref;    /* fn(ws); LUA_NOREF: none. The other form's whole handler */
    int               message_ref; /* fn(ws, message, kind) */
    int               close_ref;   /* fn(ws, code, reason) */
    unsigned          protocol_count;
    struct str        protocols[LWS_PROTOCOLS_MAX]; /* owned */
};

/* A message that nobody has taken yet. */
struct lws_message {
    enum ws_kind kind;
    size_t       len;
    char         at[];
};

enum lws_event { LWS_OPEN, LWS_MESSAGE, LWS_CLOSE };

struct lws {
    struct handle       handle;
    struct list         of_worker;
    struct lws_worker  *worker;
    struct lws_rules   *rules; /* a share */
    struct vm          *vm;
    struct ws          *ws;      /* NULL: not open yet, or closed */
    struct lws_head    *head;    /* owned: the request; NULL for a client's */
    const char         *label;   /* "GET /chat": the head's */
    struct task        *task;    /* that handles it; NULL: none does, or it has not begun */
    struct lws_message *kept;    /* owned: has come, and nobody was there to take it */
    char               *reason;  /* owned: of the close; NULL: none */
    struct held        *held;    /* by the task that opened it: a client's; else NULL */
    struct waitq        readers; /* one at most */
    struct waitq        senders;
    struct waitq        enders; /* who waits for the end */
    struct list         topics; /* struct lws_seat, by of_socket */
    unsigned            topic_count;
    uint64_t            serial;
    int                 self_ref;   /* in the registry; LUA_NOREF: it is over */
    int                 protocol;   /* index in rules->protocols; -1: none */
    uint32_t            timeout_ms; /* of a handler; 0: none */
    unsigned char       reason_len;
    unsigned            code : 13;   /* once it is closed, or closes by us */
    unsigned            event : 2;   /* the last that a task was started for */
    bool                handled : 1; /* by a task that has not ended */
    bool                closing : 1; /* by us: what still comes is not for Lua */
    bool                closed : 1;
    bool                told : 1;     /* the handler of `close` has begun, or there is none */
    bool                promised : 1; /* a reader was woken, and has not taken its message yet */
};

#define LWS_METATABLE "srv.WebSocket"

/* A socket at INDEX, or misuse. */
struct lws *lws_check(lua_State *L, int index);

#endif
