/* server/worker_eval.h - a text that a worker runs in its app, and what comes back (bind/leval.h).
 *
 * All calls and ON_LINE are for the control thread. The worker holds its own half until the text has
 * ended; a message between both is dropped with the loop that it goes to. */
#ifndef SERVER_WORKER_EVAL_H
#define SERVER_WORKER_EVAL_H

#include "base/buf.h"
#include "base/str.h"

struct worker;
struct worker_eval;

enum {
    WORKER_EVAL_MS           = 10000,       /* for a text, its waits included */
    WORKER_EVAL_OUTPUT_BYTES = 1024 * 1024, /* that it may print */
};

enum worker_eval_line {
    EVAL_BEGINS, /* the worker has come to it; no text */
    EVAL_PRINTS, /* {"print":"..."} */
    EVAL_ENDS,   /* {"values":[...]} or {"error":"..."}; the eval is freed behind it */
};

typedef void (*worker_eval_fn)(enum worker_eval_line what, struct str line, void *arg);

/* Takes TEXT, which is empty afterwards. NULL: no memory. */
struct worker_eval *worker_eval_start(struct worker *worker, struct buf *text,
                                      worker_eval_fn on_line, void *arg);
/* Before EVAL_ENDS: calls it off. Nothing comes any more. */
void worker_eval_cancel(struct worker_eval *eval);

#endif
