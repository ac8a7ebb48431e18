#include "bind/ludp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/ltask.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/addr.h"
#include "net/udp_ports.h"
#include "vm/task.h"
#include "vm/vm_state.h"
#include "vm/waitq.h"

#define UDP_METATABLE "srv.core.Udp"

enum {
    DATAGRAM_BYTES_MAX = 65536,
    RUN_MAX            = 64, /* received without waiting: then others have their turn */
};

/* Everybody who waits is woken by any edge, and tries again: datagrams come one by one. */
struct ludp {
    struct handle    handle;
    struct io        io;
    int              fd; /* -1: closed */
    struct vm       *vm;
    struct udp_port *port; /* whose socket `fd` duplicates; NULL: it is not bound, or its own */
    struct waitq     waiters;
    struct timer     turn; /* what is ready waits for it, behind a long run */
    struct loop     *loop;
    unsigned         run; /* datagrams since the last wait */
};

/* --- life ------------------------------------------------------------------------------------- */

static void close_udp(struct ludp *u)
{
    if (u->fd < 0)
        return;
    io_stop(&u->io);
    close(u->fd);
    u->fd = -1;
    if (u->port)
        udp_ports_give(u->port, u->vm);
    u->port = NULL;
    timer_stop(&u->turn, u->loop);
    waitq_wake_all(&u->waiters);
}

static void on_cut(struct handle *handle)
{
    close_udp(container_of(handle, struct ludp, handle));
}

static void on_event(int fd, short what, void *arg)
{
    struct ludp *u = arg;

    waitq_wake_all(&u->waiters);
}

static void on_turn(struct timer *timer)
{
    waitq_wake_all(&container_of(timer, struct ludp, turn)->waiters);
}

static int push_errno(lua_State *L, const char *doing)
{
    const char *code = errno == ECONNREFUSED ? "refused" : "unavailable";

    return lerror_nil(L, code, "%s: %s", doing, strerror(errno));
}

static int fail(lua_State *L, struct ludp *u, const char *doing)
{
    int number = errno;

    close_udp(u);
    errno = number;
    return push_errno(L, doing);
}

static int fail_at(lua_State *L, struct ludp *u, const struct addr *at, const char *what)
{
    int  number = errno;
    char address[ADDR_TEXT_BYTES], doing[ADDR_TEXT_BYTES + 32];

    snprintf(doing, sizeof(doing), "%s %s", addr_format(at, address), what);
    errno = number;
    return fail(L, u, doing);
}

static int connect_to(int fd, const struct addr *peer)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(peer, &sa);

    return connect(fd, (struct sockaddr *)&sa, len);
}

static struct ludp *push_new(lua_State *L)
{
    struct ludp *u = lclass_new(L, UDP_METATABLE, sizeof(*u));

    u->fd         = -1;
    u->handle.cut = on_cut;
    u->loop       = env_of(L)->loop;
    u->vm         = vm_of(L);
    timer_init(&u->turn, on_turn);
    waitq_init(&u->waiters);
    handle_link(&u->handle, u->vm);
    return u;
}

static void check_addr(lua_State *L, int index, struct addr *addr)
{
    lua_Integer port = luaL_checkinteger(L, index + 1);
    struct err  err;

    luaL_argcheck(L, port >= 0 && port <= UINT16_MAX, index + 1, "a port is 0 to 65535");
    if (addr_parse_host(addr, luaL_checkstring(L, index), (uint16_t)port, &err) < 0)
        luaL_argerror(L, index, err.text);
}

static int watch(lua_State *L, struct ludp *u)
{
    if (io_start_edge(&u->io, u->loop, u->fd, on_event, u) < 0)
        return fail(L, u, "the socket cannot be watched");
    return 1;
}

/* bind(host, port) -> core | nil, err; the host is an address */
static int bind_udp(lua_State *L)
{
    const struct env *env = env_of(L);
    struct addr       at;
    struct err        err;
    struct ludp      *u;

    check_addr(L, 1, &at);
    if (!env->udp_ports)
        return lerror_nil(L, "unavailable", "no UDP sockets are lent to this VM");
    u = push_new(L);
    if (udp_ports_take(&u->port, env->udp_ports, &at, env->worker_id, u->vm, &err) < 0)
        return lerror_nil(L, "unavailable", "%s", err.text);
    u->fd = fcntl(udp_port_fd(u->port), F_DUPFD_CLOEXEC, 0);
    if (u->fd < 0) {
        udp_ports_give(u->port, u->vm);
        u->port = NULL;
        return push_errno(L, "no socket");
    }
    return watch(L, u);
}

/* connect(host, port) -> core | nil, err; the host is an address */
static int connect_udp(lua_State *L)
{
    struct addr  peer;
    struct ludp *u;

    check_addr(L, 1, &peer);
    u     = push_new(L);
    u->fd = socket(peer.family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->fd < 0)
        return push_errno(L, "no socket");
    if (connect_to(u->fd, &peer) < 0)
        return fail_at(L, u, &peer, "cannot be reached");
    return watch(L, u);
}

static struct ludp *check_udp(lua_State *L)
{
    return luaL_checkudata(L, 1, UDP_METATABLE);
}

static int udp_gc(lua_State *L)
{
    struct ludp *u = lua_touserdata(L, 1);

    handle_unlink(&u->handle);
    close_udp(u);
    return 0;
}

/* core:close(): whoever waits gets `closed` */
static int udp_close(lua_State *L)
{
    close_udp(check_udp(L));
    return 0;
}

static int push_from(lua_State *L, const struct sockaddr_storage *sa, socklen_t len)
{
    char        text[ADDR_TEXT_BYTES];
    struct addr addr;

    addr_from_sockaddr(&addr, (const struct sockaddr *)sa, len);
    lua_pushstring(L, addr_format_host(&addr, text));
    lua_pushinteger(L, addr.port);
    return 2;
}

/* core:address() -> host, port | nil */
static int udp_address(lua_State *L)
{
    struct ludp            *u = check_udp(L);
    struct sockaddr_storage sa;
    socklen_t               len = sizeof(sa);

    if (u->fd < 0 || getsockname(u->fd, (struct sockaddr *)&sa, &len) < 0)
        return 0;
    return push_from(L, &sa, len);
}

/* --- datagrams -------------------------------------------------------------------------------- */

static int push_closed(lua_State *L)
{
    return lerror_nil(L, "closed", "the socket is closed");
}

static bool is_not_yet(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

/* 0: nothing is there. Else the number of results. */
static int receive_one(lua_State *L, struct ludp *u)
{
    char                    bytes[DATAGRAM_BYTES_MAX];
    struct sockaddr_storage from;
    socklen_t               len = sizeof(from);
    ssize_t                 n;

    if (u->fd < 0)
        return push_closed(L);
    n = recvfrom(u->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &len);
    if (n < 0)
        return is_not_yet(errno) ? 0 : push_errno(L, "nothing was received");
    u->run++;
    lua_pushlstring(L, bytes, (size_t)n);
    return 1 + push_from(L, &from, len);
}

static int push_again(lua_State *L, void *op)
{
    lua_pushboolean(L, false);
    return 1;
}

static int wait_to_receive(lua_State *L, struct ludp *u, uint64_t timeout_ms)
{
    u->run = 0;
    return waitq_wait(L, &u->waiters, push_again, timeout_ms, ltask_push_timeout, NULL, u);
}

/* core:receive([seconds]) -> bytes, host, port | false (again) | nil, err */
static int udp_receive(lua_State *L)
{
    struct ludp *u       = check_udp(L);
    uint64_t     timeout = ltask_timeout_ms(L, 2);
    int          results;

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (u->fd >= 0 && u->run >= RUN_MAX) {
        timer_start(&u->turn, u->loop, 0);
        return wait_to_receive(L, u, timeout);
    }
    results = receive_one(L, u);
    if (results > 0)
        return results;
    return wait_to_receive(L, u, timeout);
}

/* core:send(bytes, [host], [port]) -> true | false (again) | nil, err */
static int udp_send(lua_State *L)
{
    struct ludp            *u = check_udp(L);
    size_t                  size;
    const char             *bytes = luaL_checklstring(L, 2, &size);
    struct sockaddr_storage to;
    struct addr             addr;
    socklen_t               len = 0;

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (!lua_isnoneornil(L, 3)) {
        check_addr(L, 3, &addr);
        len = addr_to_sockaddr(&addr, &to);
    }
    if (u->fd < 0)
        return push_closed(L);
    if (sendto(u->fd, bytes, size, MSG_NOSIGNAL, len ? (struct sockaddr *)&to : NULL, len) >= 0) {
        lua_pushboolean(L, true);
        return 1;
    }
    if (errno == EMSGSIZE)
        return lerror_nil(L, "too_large", "%d bytes are more than one datagram takes", (int)size);
    if (!is_not_yet(errno))
        return push_errno(L, "nothing was sent");
    return waitq_wait(L, &u->waiters, push_again, UINT64_MAX, NULL, NULL, u);
}

int ludp_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "send", udp_send },       { "receive", udp_receive }, { "close", udp_close },
        { "address", udp_address }, { "__gc", udp_gc },         { NULL, NULL },
    };

    lclass_add(L, UDP_METATABLE, METHODS);
    lua_newtable(L);
    lua_pushcfunction(L, bind_udp);
    lua_setfield(L, -2, "bind");
    lua_pushcfunction(L, connect_udp);
    lua_setfield(L, -2, "connect");
    return 1;
}
