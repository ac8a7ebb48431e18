/* net/listener.h - listening sockets, and watching one on a loop.
 *
 * The sockets of an address belong to the process: for TCP one with SO_REUSEPORT for each worker
 * slot, so that workers share no accept queue; for a Unix path one for all. They are opened once
 * and never closed under load, for closing one resets what waits in its queue: a worker that
 * cannot serve its own just stops watching, and any other loop may watch the same descriptor. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stdbool.h>

#include "ev/loop.h"
#include "ev/timer.h"
#include "net/addr.h"

struct err;
struct listener;

enum {
    LISTENER_BACKLOG = 4096,        /* the kernel takes the lesser of this and net.core.somaxconn */
    LISTENER_ACCEPTS_PER_TURN = 64, /* then other events get their turn */
    LISTENER_PAUSE_MS         = 100, /* after running out of descriptors or memory */
};

/* Opens AT for SLOTS workers and listens. Port 0 takes a free one, the same for all slots. A taken
 * port is ERR_IN_USE, also when another process of ours has it; so is a Unix path on which
 * somebody listens (a socket file that nobody serves is replaced; any other file is ERR_EXISTS).
 * "::" takes IPv4 too. Accepted sockets have TCP_NODELAY. *OUT is set only on success; the path
 * in AT is borrowed. */
int listener_open(struct listener **out, const struct addr *at, unsigned slots, struct err *err);
/* The same from HELD sockets that listen on AT already, as another process has left them: the
 * first slots get duplicates of these, the others siblings opened beside them, or share. */
int listener_reopen(struct listener **out, const struct addr *at, const int *held,
                    unsigned held_count, unsigned slots, struct err *err);
/* Closes the sockets in this process; a Unix socket's file stays. NULL is fine. */
void listener_close(struct listener *listener);
/* The same, and removes the Unix socket's file, unless somebody listens on it: this server's next
 * process, or another server that took the path. For the last process to hold the sockets. */
void listener_withdraw(struct listener *listener);

/* The bound address, with the port that was taken. */
const struct addr *listener_addr(const struct listener *listener);
/* Borrowed. Slots of a Unix path share one. */
int listener_fd(const struct listener *listener, unsigned slot);

/* --- watching ------------------------------------------------------------------------------- */

/* The callee owns FD, non-blocking and close-on-exec, from here on. May stop the watch. */
typedef void (*accept_fn)(int fd, const struct addr *peer, void *arg);
/* Accepting failed with errno NUMBER and pauses; told once, until it has worked again. */
typedef void (*accept_fault_fn)(int number, void *arg);

/* Embedded; belongs to the loop's thread. */
struct listener_watch {
    struct io       io;
    struct loop    *loop;
    accept_fn       on_accept;
    accept_fault_fn on_fault; /* NULL is fine */
    void           *arg;
    int             fd; /* borrowed while watched, else -1 */
    bool            faulty;
    struct timer    pause;
};

void listener_watch_init(struct listener_watch *watch, struct loop *loop, accept_fn on_accept,
                         accept_fault_fn on_fault, void *arg);
/* 0, or ERR_SYSTEM with errno set. Other loops may watch FD at the same time. */
int listener_watch_start(struct listener_watch *watch, int fd);
/* on_accept() does not run again once this returns. Idempotent; may be started again. */
void listener_watch_stop(struct listener_watch *watch);
/* For a worker that drains: calls on_accept() for what waits in the queue now, up to a whole
 * backlog, then has the kernel refuse whoever comes later, in every process that holds the socket,
 * and stops the watch. listener_reopen() makes such a socket listen again. */
void listener_watch_drain(struct listener_watch *watch);

#endif
