/* bind/lsocket_state.h - a connected socket in the hands of Lua. Private to bind/lsocket*. */
#ifndef BIND_LSOCKET_STATE_H
#define BIND_LSOCKET_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include <lua.h>

#include "ev/timer.h"
#include "net/addr.h"
#include "net/stream.h"
#include "vm/task.h"
#include "vm/vm_state.h"

#define LSOCKET_METATABLE "srv.core.Socket"

struct channel;
struct loop;
struct lsocket;

/* Reading or writing: one task at a time. */
struct way {
    struct lsocket *socket;
    struct task    *task; /* that waits; NULL: nobody */
    struct timer    limit;
    bool            timed_out;
    struct timer    turn; /* what is ready waits for it, behind a long run */
};

struct lsocket {
    struct handle handle;
    struct loop  *loop;
    bool          connecting;
    bool          open; /* `stream` is, and is Lua's */
    struct stream stream;
    struct addr   peer;
    struct way    in, out;
    size_t        run;  /* bytes read since the last wait */
    struct iovec  left; /* of the text at 2 of the writer's stack */

    struct channel *lent;     /* the stream is this one's; NULL: it is not lent */
    lua_State      *L;        /* the VM's, */
    int             self_ref; /* whose registry has the socket while it is lent */
};

void lsocket_init_way(struct way *way, struct lsocket *s);
void lsocket_close(struct lsocket *s); /* idempotent; who waits gets `closed` */

/* A task waits in one way until it is woken or TIMEOUT_MS are over; ends a lua_CFunction. A task that is cancelled
 * closes the socket. */
int  lsocket_wait(lua_State *L, struct way *way, uint64_t timeout_ms, task_push_fn push);
void lsocket_wake(struct way *way); /* whoever waits, if anybody does */
/* The wait is over, as the last act of PUSH. */
int lsocket_settle(struct way *way, int results);

/* nil, err: DOING is "reading" */
int lsocket_push_busy(lua_State *L, const char *doing);

#endif
