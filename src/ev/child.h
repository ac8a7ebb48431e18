/* ev/child.h - other programs: started on a thread of the pool, watched by the loop, always reaped.
 *
 * Each child leads a process group of its own, so a signal reaches what it has started in turn. Its
 * end is seen by a pidfd (CORE, decision 17: never by SIGCHLD). It stays a zombie until its owner lets
 * go, for as long as it does its number means nobody else. */
#ifndef EV_CHILD_H
#define EV_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

struct child;
struct children;
struct err;
struct loop;

enum {
    CHILDREN_MAX   = 256,  /* of one loop, those that are being ended included */
    CHILD_GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
};

/* --- starting: any thread, blocks for as long as fork and exec take ------------------------------ */

struct child_spec {
    char *const *argv; /* argv[0] is looked for in $PATH unless it has a slash */
    char *const *envp;
    const char  *cwd;       /* NULL: ours */
    bool         has_input; /* false: /dev/null */
};

/* A process that runs, with our ends of its pipes (not blocking, close-on-exec). */
struct child_start {
    pid_t pid; /* 0: none */
    int   pidfd;
    int   ends[3]; /* its stdin, stdout, stderr; -1: none */
};

/* It inherits descriptors 0 to 2 and no others, no blocked and no ignored signals.
 * 0, or ERR_NOT_FOUND (no such program, or folder), ERR_DENIED, ERR_SYSTEM. */
int child_spawn(const struct child_spec *spec, struct child_start *out, struct err *err) MUST_CHECK;

/* Nobody wants it: killed, reaped, its ends closed. Blocks until it is gone. */
void child_discard(struct child_start *start);

/* --- the children of a loop, on its thread ------------------------------------------------------- */

int children_open(struct children **out, struct loop *loop, struct err *err);
/* Kills those that are left and reaps them. NULL is fine. */
void children_close(struct children *children);

bool children_is_full(const struct children *children);

/* Once, from the loop's turn. */
typedef void (*child_exit_fn)(struct child *child, void *arg);

/* Takes START's pid and pidfd (not its ends), also after an error: NULL, no memory or no descriptor. */
struct child *child_adopt(struct children *children, struct child_start *start,
                          child_exit_fn on_exit, void *arg) MUST_CHECK;

pid_t child_pid(const struct child *child);
bool  child_has_exited(const struct child *child);
/* After its exit: its exit code; or its signal, negative. */
int child_status(const struct child *child);

/* To its group. False: there is nobody any more. */
bool child_signal(struct child *child, int signal);

/* The owner lets go, one way or the other; on_exit() does not run any more. */
void child_reap(struct child *child); /* after its exit: what it has started in turn goes on */
void child_end(struct child *child);  /* SIGTERM, then SIGKILL, to all of its group */

#endif
