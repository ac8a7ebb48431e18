/* server/supervisor.h - the small process that outlives the server: it holds the listening sockets,
 * starts the server again when it crashes, and passes signals on (CORE, decision 7).
 *
 * No threads, no Lua, no libevent here. The server opens each listener once and hands a duplicate
 * up; a server that is started again finds them in its link, so that nobody is refused. */
#ifndef SERVER_SUPERVISOR_H
#define SERVER_SUPERVISOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;

enum {
    SUPERVISOR_HELD_MAX  = 513, /* two listening sockets for each worker, and the certificates */
    SUPERVISOR_ROUTE_MAX = 256,
};

/* A listening socket: the address as it was asked for, the worker's slot, its descriptor. Or a file in
 * memory, by a name that is no address. */
struct held_socket {
    char     address[128];
    unsigned slot;
    int      fd;
};

/* Shared between both processes: what the dying server last said. */
struct last_words {
    atomic_int signal; /* 0: none */
    char       route[SUPERVISOR_ROUTE_MAX];
};

/* The server's end. */
struct supervisor_link {
    int                control_fd; /* -1 with --single */
    pid_t              supervisor; /* not with --single */
    unsigned           restarts;   /* 0 in the first server */
    struct held_socket held[SUPERVISOR_HELD_MAX];
    unsigned           held_count;
    struct last_words *last_words; /* never NULL */
};

/* The server's main(): returns its exit status. */
typedef int (*supervisor_child_fn)(struct supervisor_link *link, void *arg);

/* Runs CHILD in a process of its own until it exits by itself or a signal ends it; the exit status
 * for main(). A server that dies before it said it is ready is not started again. */
int supervisor_run(supervisor_child_fn child, void *arg);

/* The same without a second process. */
int supervisor_run_single(supervisor_child_fn child, void *arg);

/* --- called in the server -------------------------------------------------------------------- */

/* The held socket for an address and slot, or -1. The descriptor stays the link's. */
int supervisor_held(const struct supervisor_link *link, const char *address, unsigned slot);

/* Gives a duplicate of FD up, so that the next server finds it. */
int supervisor_hold(struct supervisor_link *link, const char *address, unsigned slot, int fd,
                    struct err *err);

/* The server has become USER: the supervisor does the same, and ends all if it cannot. */
int supervisor_follow(struct supervisor_link *link, const char *user, struct err *err);

/* From here on a crash is answered by a restart. */
void supervisor_ready(struct supervisor_link *link);

#endif
