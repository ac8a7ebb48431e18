/* bind/leval.h - runs a text that somebody has typed in the VM of a running app, as a task: srv repl.
 *
 * lua/srv/async/evaluate.lua says what the text sees and how values are shown. */
#ifndef BIND_LEVAL_H
#define BIND_LEVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct leval;
struct vm;

/* In the VM's thread. TEXT is borrowed for the call. */
struct leval_hooks {
    /* It has printed. False: there is no room for more, or nobody listens. */
    bool (*on_print)(struct str text, void *arg);
    /* The last call, once: COUNT values as texts, or WHY. */
    void (*on_values)(const struct str *values, unsigned count, void *arg);
    void (*on_fault)(struct str why, void *arg);
};

enum { LEVAL_VALUES_MAX = 32 }; /* shown; the text may give more */

/* From the loop's turn. TEXT is borrowed until the last call, which may come before this returns: then,
 * and without memory, it is NULL. */
struct leval *leval_start(struct vm *vm, struct str text, uint64_t limit_ms,
                          const struct leval_hooks *hooks, void *arg);

/* Before the last call: calls it off. The last call follows, at once or soon. */
void leval_cancel(struct leval *eval);

#endif
