/* server/admin.h - the socket by which a running server is looked into: srv flame --attach, srv doctor
 * --attach, srv repl. Its owner's alone.
 *
 * A Unix socket in a folder of mode 0700, on the control thread, so that a worker that is stuck does not
 * silence it. A client sends one command, a line; lines come back until the server closes. What a
 * command means is its own file's business: this one knows lines, bounds and who is asking. */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/str.h"

struct admin;
struct admin_client;
struct err;
struct loop;

enum {
    ADMIN_PATH_BYTES  = 108, /* of a Unix socket's address */
    ADMIN_CLIENTS_MAX = 8,
    ADMIN_LINE_MAX    = 1024 * 1024,      /* of what a client sends */
    ADMIN_UNREAD_MAX  = 16 * 1024 * 1024, /* for a client that does not read; it is cut then */
};

/* All run on the control thread's loop. A client is the command's from begin() until it has called
 * admin_end() or gone() was called. */
struct admin_command {
    struct list link; /* private */
    const char *name; /* "profile" */
    /* ARGS: the rest of the line. */
    void (*begin)(struct admin_client *client, struct str args, void *arg);
    /* The client has sent a line more; NULL: it may not. */
    void (*line)(struct admin_client *client, struct str line, void *arg);
    /* The client has closed, or is cut. NULL: nothing to be done. */
    void (*gone)(struct admin_client *client, void *arg);
    void *arg;
};

/* PATH is where admin_path() says. 0, or an error: the server goes on without. */
int  admin_open(struct admin **out, struct loop *loop, const char *path, struct err *err);
void admin_close(struct admin *admin); /* all clients are gone then; NULL is fine */
/* Borrowed until admin_close(). */
void admin_add(struct admin *admin, struct admin_command *command);

/* "$XDG_RUNTIME_DIR/srv/PID.sock", else "/tmp/srv-UID/PID.sock". */
void admin_path(char path[ADMIN_PATH_BYTES], pid_t pid);

/* --- for commands -------------------------------------------------------------------------------- */

/* Sends TEXT and a line break. */
void admin_say(struct admin_client *client, struct str text);
void admin_fail(struct admin_client *client, const char *format,
                ...); /* {"error":...}, then the end */
/* Bytes that were said and that the client has not taken yet. */
size_t admin_unread(const struct admin_client *client);
/* Nothing more comes; what was said still goes out. */
void admin_end(struct admin_client *client);

/* A place for the command's own state. */
void *admin_state(const struct admin_client *client);
void  admin_set_state(struct admin_client *client, void *state);

#endif
