/* server/admin_eval.h - the command `eval WORKER` of the admin socket: runs the text that follows, up
 * to a line with "." alone, in that worker's app. A line that begins with "." is sent with one more. */
#ifndef SERVER_ADMIN_EVAL_H
#define SERVER_ADMIN_EVAL_H

#include "server/admin.h"

struct loop;
struct worker_shared;

struct admin_eval {
    struct admin_command        command;
    struct loop                *loop;
    const struct worker_shared *shared;
};

/* In its owner's memory, which outlives ADMIN. */
void admin_eval_add(struct admin_eval *eval, struct admin *admin, struct loop *loop,
                    const struct worker_shared *shared);

#endif
