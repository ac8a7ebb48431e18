#include "server/worker_eval.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/log.h"
#include "bind/leval.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "server/generation.h"
#include "server/worker.h"
#include "server/worker_state.h"

enum {
    LINE_BYTES_MAX = 8 * 1024 * 1024, /* of JSON, which may be six times what it says */
    PRINT_COSTS    = 64,              /* of each print, besides its bytes: empty ones count, too */
};

/* Freed by the last of: the control thread's handle, the worker's run, each message under way. */
struct worker_eval {
    atomic_uint    holders;
    struct worker *worker;

    /* The control thread's. */
    worker_eval_fn on_line; /* NULL: nobody listens any more */
    void          *arg;

    /* The worker's, from the first message on. */
    struct buf    text;
    struct leval *running;
    bool          is_called_off;
    bool          is_full;
    size_t        printed;
};

struct eval_message {
    struct message        message;
    struct worker_eval   *eval;
    enum worker_eval_line what;
    struct buf            line;
};

/* --- holding ------------------------------------------------------------------------------------------ */

static void hold(struct worker_eval *eval)
{
    atomic_fetch_add(&eval->holders, 1);
}

static void release(struct worker_eval *eval)
{
    if (atomic_fetch_sub(&eval->holders, 1) != 1)
        return;
    buf_fini(&eval->text);
    free(eval);
}

static void free_message(struct eval_message *m)
{
    release(m->eval);
    buf_fini(&m->line);
    free(m);
}

static void drop(struct message *message)
{
    free_message(container_of(message, struct eval_message, message));
}

static void post(struct worker_eval *eval, struct inbox *inbox, void (*deliver)(struct message *),
                 enum worker_eval_line what, struct buf *line)
{
    struct eval_message *m = calloc(1, sizeof(*m));

    if (!m) {
        log_fatal("out of memory");
        abort();
    }
    hold(eval);
    *m = (struct eval_message){ .message = { .deliver = deliver, .drop = drop },
                                .eval    = eval,
                                .what    = what };
    if (line)
        m->line = *line;
    inbox_post(inbox, &m->message);
}

/* --- lines: from the worker to the control thread -------------------------------------------------------- */

static void deliver_line(struct message *message)
{
    struct eval_message *m       = container_of(message, struct eval_message, message);
    struct worker_eval  *eval    = m->eval;
    worker_eval_fn       on_line = eval->on_line;

    if (on_line && m->what == EVAL_ENDS) {
        eval->on_line = NULL;
        release(eval); /* the handle is gone */
    }
    if (on_line)
        on_line(m->what, buf_str(&m->line), eval->arg);
    free_message(m);
}

/* Takes LINE. One that is too long to be told ends as an error. */
static void say(struct worker_eval *eval, enum worker_eval_line what, struct buf *line)
{
    if (line && line->failed) {
        buf_clear(line);
        buf_add_str(line, STR("{\"error\":\"the values are too large to be shown\"}"));
    }
    post(eval, eval->worker->shared->control, deliver_line, what, line);
}

static void say_print(struct worker_eval *eval, struct str text)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_add_str(&line, STR("{\"print\":"));
    json_string(&line, text);
    buf_add_byte(&line, '}');
    say(eval, EVAL_PRINTS, &line);
}

static bool on_print(struct str text, void *arg)
{
    struct worker_eval *eval = arg;

    if (eval->is_full || eval->is_called_off)
        return false;
    eval->printed += text.len + PRINT_COSTS;
    eval->is_full = eval->printed > WORKER_EVAL_OUTPUT_BYTES;
    say_print(eval, eval->is_full ? STR("(it prints more than is shown)") : text);
    return !eval->is_full;
}

static void end(struct worker_eval *eval, struct buf *line)
{
    eval->running = NULL;
    say(eval, EVAL_ENDS, line);
    release(eval);
}

static void on_values(const struct str *values, unsigned count, void *arg)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_add_str(&line, STR("{\"values\":["));
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            buf_add_byte(&line, ',');
        json_string(&line, values[i]);
    }
    buf_add_str(&line, STR("]}"));
    end(arg, &line);
}

static void on_fault(struct str why, void *arg)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_add_str(&line, STR("{\"error\":"));
    json_string(&line, why);
    buf_add_byte(&line, '}');
    end(arg, &line);
}

static const struct leval_hooks HOOKS = { on_print, on_values, on_fault };

/* --- orders: from the control thread to the worker -------------------------------------------------------- */

static void run(struct worker_eval *eval)
{
    struct worker *w = eval->worker;

    hold(eval); /* until end() */
    say(eval, EVAL_BEGINS, NULL);
    if (w->current)
        eval->running =
            leval_start(w->current->vm, buf_str(&eval->text), WORKER_EVAL_MS, &HOOKS, eval);
    else
        on_fault(STR("no version of the app serves on this worker now"), eval);
}

static void deliver_start(struct message *message)
{
    struct eval_message *m = container_of(message, struct eval_message, message);

    run(m->eval);
    free_message(m);
}

static void deliver_cancel(struct message *message)
{
    struct eval_message *m = container_of(message, struct eval_message, message);

    m->eval->is_called_off = true;
    if (m->eval->running)
        leval_cancel(m->eval->running);
    free_message(m);
}

struct worker_eval *worker_eval_start(struct worker *worker, struct buf *text,
                                      worker_eval_fn on_line, void *arg)
{
    struct worker_eval *eval = calloc(1, sizeof(*eval));

    if (!eval)
        return NULL;
    eval->worker  = worker;
    eval->on_line = on_line;
    eval->arg     = arg;
    eval->text    = *text;
    buf_init(text, text->bytes_max);
    hold(eval);
    post(eval, loop_inbox(worker_loop(worker)), deliver_start, EVAL_BEGINS, NULL);
    return eval;
}

void worker_eval_cancel(struct worker_eval *eval)
{
    eval->on_line = NULL;
    post(eval, loop_inbox(worker_loop(eval->worker)), deliver_cancel, EVAL_ENDS, NULL);
    release(eval);
}
