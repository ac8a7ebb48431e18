#include "bind/lsocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lsocket_fault.h"
#include "bind/lsocket_lend.h"
#include "bind/lsocket_server.h"
#include "bind/lsocket_state.h"
#include "bind/lsocket_tls.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dial.h"
#include "net/tls.h"
#include "vm/task.h"
#include "vm/vm_state.h"

enum {
    PIECE_BYTES_MAX = 32 * 1024,
    RUN_BYTES_MAX   = 64 * 1024, /* read without waiting: then others have their turn, */
    RUN_MS_MAX      = 10,        /* and when this one has taken so long */
};

/* --- life ------------------------------------------------------------------------------------- */

static void on_cut(struct handle *handle)
{
    struct lsocket *s = container_of(handle, struct lsocket, handle);

    lsocket_close(s);
    lsocket_take_back(s);
}

static struct lsocket *push_new(lua_State *L)
{
    struct lsocket *s = lclass_new(L, LSOCKET_METATABLE, sizeof(*s));

    s->loop       = env_of(L)->loop;
    s->handle.cut = on_cut;
    lsocket_init_way(&s->in, s);
    lsocket_init_way(&s->out, s);
    handle_link(&s->handle, vm_of(L));
    return s;
}

/* new() -> core */
static int socket_new(lua_State *L)
{
    push_new(L);
    return 1;
}

static struct lsocket *check_socket(lua_State *L)
{
    return luaL_checkudata(L, 1, LSOCKET_METATABLE);
}

static int socket_gc(lua_State *L)
{
    struct lsocket *s = lua_touserdata(L, 1);

    handle_unlink(&s->handle);
    lsocket_close(s);
    return 0;
}

/* core:close(): whoever waits gets `closed`. With TLS the peer is told that this was all, unless a write is
 * broken off */
static int socket_close(lua_State *L)
{
    struct lsocket *s = check_socket(L);

    if (s->open && tls_info(&s->stream) && !s->out.task && !s->stream.shut)
        stream_shut(&s->stream);
    lsocket_close(s);
    return 0;
}

/* core:is_open() -> boolean */
static int socket_is_open(lua_State *L)
{
    lua_pushboolean(L, check_socket(L)->open);
    return 1;
}

/* --- a turn for others ---------------------------------------------------------------------------- */

/* A peer that sends faster than it is served would keep the loop to itself: what is ready waits, too. */
static bool has_run_long(const struct lsocket *s)
{
    uint64_t run_ns = loop_clock_ns(s->loop) - loop_now_ns(s->loop);

    return s->run >= RUN_BYTES_MAX || run_ns >= (uint64_t)RUN_MS_MAX * NS_PER_MS;
}

static int wait_for_turn(lua_State *L, struct way *way, uint64_t timeout_ms, task_push_fn push)
{
    timer_start(&way->turn, way->socket->loop, 0);
    return lsocket_wait(L, way, timeout_ms, push);
}

/* --- reading ------------------------------------------------------------------------------------ */

/* A piece, nil at the end, false when nothing is there, or nil and an error. */
static int push_piece(lua_State *L, struct lsocket *s, size_t bytes_max)
{
    char    piece[PIECE_BYTES_MAX];
    ssize_t n;

    if (!s->open)
        return lsocket_push_closed(L, s);
    n = stream_read(&s->stream, piece, bytes_max < sizeof(piece) ? bytes_max : sizeof(piece));
    if (n == STREAM_FAIL)
        return lsocket_push_closed(L, s);
    if (n == STREAM_FIN && s->stream.cut)
        return lerror_nil(L, "closed",
                          "the connection ended without TLS' own end: something may be missing");
    if (n == STREAM_FIN)
        lua_pushnil(L);
    else if (n == STREAM_WAIT)
        lua_pushboolean(L, false);
    else
        lua_pushlstring(L, piece, (size_t)n);
    s->run += n > 0 ? (size_t)n : 0;
    return 1;
}

static int push_read(lua_State *L, void *op)
{
    struct way *way = op;

    if (way->timed_out)
        return lsocket_settle(way, ltask_push_timeout(L));
    return lsocket_settle(way, push_piece(L, way->socket, (size_t)lua_tonumber(L, 2)));
}

/* core:read(bytes_max, [seconds]) -> string | nil | false (woken for nothing: again) | nil, err */
static int socket_read(lua_State *L)
{
    struct lsocket *s         = check_socket(L);
    lua_Number      bytes_max = luaL_checknumber(L, 2);
    uint64_t        timeout   = ltask_timeout_ms(L, 3);
    int             results;

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    luaL_argcheck(L, bytes_max >= 1, 2, "from 1 on");
    if (s->in.task)
        return lsocket_push_busy(L, "reading");
    if (s->open && has_run_long(s))
        return wait_for_turn(L, &s->in, timeout, push_read);
    results = push_piece(L, s, (size_t)bytes_max);
    if (results == 2 || lua_type(L, -1) != LUA_TBOOLEAN)
        return results;
    lua_pop(L, 1);
    return lsocket_wait(L, &s->in, timeout, push_read);
}

/* --- writing ------------------------------------------------------------------------------------ */

/* STREAM_WAIT, STREAM_FAIL, or 0: all is with the kernel. */
static ssize_t write_on(struct lsocket *s)
{
    while (s->left.iov_len > 0) {
        ssize_t n = stream_writev(&s->stream, &s->left, 1);

        if (n < 0)
            return n;
        s->left.iov_base = (char *)s->left.iov_base + n;
        s->left.iov_len -= (size_t)n;
    }
    return 0;
}

/* Part of the text may be sent: what came next would be read amid it. */
static int push_write_timeout(lua_State *L, struct lsocket *s)
{
    lsocket_close(s);
    return lerror_nil(L, "timeout",
                      "the peer did not take what was written in time; the socket is closed");
}

static int push_written(lua_State *L, void *op)
{
    struct way     *way = op;
    struct lsocket *s   = way->socket;

    if (s->open && s->left.iov_len == 0)
        lua_pushboolean(L, true);
    else if (way->timed_out)
        return lsocket_settle(way, push_write_timeout(L, s));
    else
        return lsocket_settle(way, lsocket_push_closed(L, s));
    return lsocket_settle(way, 1);
}

/* core:write(text, [seconds]) -> true | nil, err */
static int socket_write(lua_State *L)
{
    struct lsocket *s = check_socket(L);
    size_t          len;
    const char     *text    = luaL_checklstring(L, 2, &len);
    uint64_t        timeout = ltask_timeout_ms(L, 3);
    ssize_t         state;

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (s->out.task)
        return lsocket_push_busy(L, "writing to");
    if (!s->open)
        return lsocket_push_closed(L, s);
    if (s->stream.shut)
        return lerror_nil(L, "closed", "the socket was shut down for writing");
    s->left = (struct iovec){ (void *)text, len };
    state   = write_on(s);
    if (state == STREAM_WAIT)
        return lsocket_wait(L, &s->out, timeout, push_written);
    if (state < 0)
        return lsocket_push_closed(L, s);
    if (has_run_long(s))
        return wait_for_turn(L, &s->out, timeout, push_written);
    lua_pushboolean(L, true);
    return 1;
}

/* core:shutdown() -> true | nil, err: the peer reads an end; we can still read */
static int socket_shutdown(lua_State *L)
{
    struct lsocket *s = check_socket(L);

    if (!s->open)
        return lsocket_push_closed(L, s);
    if (s->out.task)
        return lsocket_push_busy(L, "writing to");
    if (!s->stream.shut)
        stream_shut(&s->stream);
    lua_pushboolean(L, true);
    return 1;
}

/* --- the loop's turn ------------------------------------------------------------------------------ */

static void on_event(struct stream *stream, void *arg)
{
    struct lsocket *s = arg;

    if (s->in.task && (stream->can_read || stream->saw_err || stream->saw_fin))
        lsocket_wake(&s->in);
    if (s->out.task && write_on(s) != STREAM_WAIT)
        lsocket_wake(&s->out);
}

static int start_stream(struct lsocket *s, int fd, const struct addr *peer)
{
    if (stream_init(&s->stream, s->loop, fd, on_event, s) < 0)
        return -1;
    s->open = true;
    s->peer = *peer;
    if (peer->family == AF_UNIX)
        s->peer.at.path = NULL; /* it was borrowed */
    return 0;
}

bool lsocket_push(lua_State *L, int fd, const struct addr *peer)
{
    struct lsocket *s = push_new(L);

    if (start_stream(s, fd, peer) == 0)
        return true;
    lua_pop(L, 1);
    return false;
}

/* --- connecting ----------------------------------------------------------------------------------- */

struct connecting {
    struct dial     dial;
    struct lsocket *socket;
    struct task    *task;
    bool            over; /* dial.fd is ours */
};

static const char *code_of(const struct dial *dial)
{
    if (dial->rc == ERR_TIMEOUT && dial->query.rc == 0)
        return "timeout";
    if (dial->query.rc < 0)
        return "dns";
    return dial->rc == ERR_CLOSED ? "refused" : "unavailable";
}

int lsocket_push_dial_fault(lua_State *L, const struct dial *dial)
{
    return lerror_nil(L, code_of(dial), "%s", dial->err.text);
}

static void on_dialled(struct dial *dial)
{
    struct connecting *c = container_of(dial, struct connecting, dial);

    c->over = true;
    task_wake(c->task);
}

static void disarm_connect(void *op)
{
    struct connecting *c = op;

    if (!c->over)
        dial_cancel(&c->dial);
    else if (c->dial.fd >= 0)
        close(c->dial.fd);
    c->socket->connecting = false;
    free(c);
}

static int push_connected(lua_State *L, void *op)
{
    struct connecting *c  = op;
    int                fd = c->dial.fd, results = 1;

    c->dial.fd = -1;
    if (fd < 0)
        results = lsocket_push_dial_fault(L, &c->dial);
    else if (start_stream(c->socket, fd, &c->dial.peer) < 0)
        results = lerror_nil(L, "unavailable", "%s", strerror(errno));
    else
        lua_pushboolean(L, true);
    c->socket->connecting = false;
    free(c);
    return results;
}

/* core:connect(host | nil, port, path | nil, [seconds]) -> true | nil, err */
static int socket_connect(lua_State *L)
{
    struct lsocket    *s       = check_socket(L);
    struct task       *task    = task_current(L);
    struct env        *env     = env_of(L);
    uint64_t           timeout = ltask_timeout_ms(L, 5);
    struct dial_target target  = { .port = (uint16_t)luaL_optinteger(L, 3, 0) };
    struct connecting *c;

    if (task_is_cancelled(task))
        return task_stop(L);
    luaL_argcheck(L, !s->open && !s->connecting, 1, "connected already");
    target.path       = luaL_optstring(L, 4, NULL);
    target.host       = lstr_opt(L, 2);
    target.timeout_ms = timeout == UINT64_MAX ? 0 : timeout;
    if (!env->dns)
        return lerror_nil(L, "unavailable", "no sockets are lent to this VM");
    c = calloc(1, sizeof(*c));
    if (!c)
        return luaL_error(L, "not enough memory");
    c->socket     = s;
    c->task       = task;
    c->dial.done  = on_dialled;
    s->connecting = true;
    dial_start(&c->dial, env->dns, s->loop, &target);
    return task_wait(L, c, disarm_connect, push_connected);
}

/* --- both ends -------------------------------------------------------------------------------------- */

/* host, port; "unix" and 0 for a Unix socket */
static int push_addr(lua_State *L, const struct addr *addr)
{
    char text[ADDR_TEXT_BYTES];

    lua_pushstring(L, addr_format_host(addr, text));
    lua_pushinteger(L, addr->port);
    return 2;
}

/* core:peer() -> host, port */
static int socket_peer(lua_State *L)
{
    return push_addr(L, &check_socket(L)->peer);
}

/* core:address() -> host, port of our end | nil */
static int socket_address(lua_State *L)
{
    struct lsocket         *s = check_socket(L);
    struct sockaddr_storage sa;
    socklen_t               len = sizeof(sa);
    struct addr             addr;

    if (!s->open || getsockname(s->stream.fd, (struct sockaddr *)&sa, &len) < 0)
        return 0;
    addr_from_sockaddr(&addr, (struct sockaddr *)&sa, len);
    return push_addr(L, &addr);
}

int lsocket_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "connect", socket_connect }, { "read", socket_read },
        { "write", socket_write },     { "shutdown", socket_shutdown },
        { "close", socket_close },     { "is_open", socket_is_open },

        { "peer", socket_peer },       { "address", socket_address },
        { "__gc", socket_gc },         { NULL, NULL },
    };

    lclass_add(L, LSOCKET_METATABLE, METHODS);
    lua_newtable(L);
    lsocket_tls_add(L);
    lsocket_server_add(L);
    lua_pushcfunction(L, socket_new);
    lua_setfield(L, -2, "new");
    return 1;
}
