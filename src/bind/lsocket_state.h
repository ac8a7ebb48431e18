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
#include "vm/vm_state.h"

#define LSOCKET_METATABLE "srv.core.Socket"

struct channel;
struct loop;
struct task;

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

#endif
