#include "server/admin_eval.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "server/worker_eval.h"
#include "server/worker_shared.h"

enum {
    TEXT_BYTES_MAX = 1024 * 1024,
    BEGIN_MS       = 5000, /* a worker that has not begun by then is busy with one slice */
};

/* One client's text: read, then run, then forgotten. */
struct asking {
    struct admin_eval   *command;
    struct admin_client *client;
    unsigned             worker;
    struct buf           text;
    struct worker_eval  *running; /* NULL: the text is not complete, or it has ended */
    struct timer         begins;
};

static void forget(struct asking *asking)
{
    admin_set_state(asking->client, NULL);
    timer_stop(&asking->begins, asking->command->loop);
    buf_fini(&asking->text);
    free(asking);
}

/* --- while it runs ---------------------------------------------------------------------------------------- */

static void on_line(enum worker_eval_line what, struct str line, void *arg)
{
    struct asking       *asking = arg;
    struct admin_client *client = asking->client;

    switch (what) {
    case EVAL_BEGINS: timer_stop(&asking->begins, asking->command->loop); return;
    case EVAL_PRINTS: admin_say(client, line); return;
    case EVAL_ENDS:
        admin_say(client, line);
        forget(asking);
        admin_end(client);
        return;
    }
}

static void on_begin_limit(struct timer *timer)
{
    struct asking       *asking = container_of(timer, struct asking, begins);
    struct admin_client *client = asking->client;
    unsigned             worker = asking->worker;

    worker_eval_cancel(asking->running);
    forget(asking);
    admin_fail(client, "worker %u does not answer: its loop has been busy for %u s; others may",
               worker, BEGIN_MS / 1000);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static void run(struct asking *asking)
{
    struct worker       *worker = asking->command->shared->workers[asking->worker];
    struct admin_client *client = asking->client;

    asking->running = worker_eval_start(worker, &asking->text, on_line, asking);
    if (asking->running) {
        timer_start(&asking->begins, asking->command->loop, BEGIN_MS);
        return;
    }
    forget(asking);
    admin_fail(client, "no memory to run it");
}

static void on_end_of_text(struct asking *asking)
{
    struct admin_client *client = asking->client;

    if (!asking->text.failed) {
        run(asking);
        return;
    }
    forget(asking);
    admin_fail(client, "a text may have %u KiB", TEXT_BYTES_MAX / 1024);
}

/* One that is too long is read to its end, or the client, still writing, would not see the answer. */
static void on_text(struct admin_client *client, struct str line, void *arg)
{
    struct asking *asking = admin_state(client);

    if (!asking || asking->running)
        return;
    if (str_is(line, STR("."))) {
        on_end_of_text(asking);
        return;
    }
    if (asking->text.failed)
        return;
    buf_add_str(&asking->text, str_from(line, line.len > 0 && line.at[0] == '.'));
    buf_add_byte(&asking->text, '\n');
}

/* No number is worker 0. */
static bool read_worker(struct str args, unsigned count, unsigned *worker)
{
    uint64_t number = 0;

    if (args.len && !str_to_u64(args, count - 1, &number))
        return false;
    *worker = (unsigned)number;
    return true;
}

static void begin(struct admin_client *client, struct str args, void *arg)
{
    struct admin_eval *command = arg;
    struct asking     *asking;
    unsigned           worker;

    if (!read_worker(args, command->shared->worker_count, &worker)) {
        admin_fail(client, "no such worker: they are numbered 0 to %u",
                   command->shared->worker_count - 1);
        return;
    }
    asking = calloc(1, sizeof(*asking));
    if (!asking) {
        admin_fail(client, "no memory to run it");
        return;
    }
    asking->command = command;
    asking->client  = client;
    asking->worker  = worker;
    buf_init(&asking->text, TEXT_BYTES_MAX);
    timer_init(&asking->begins, on_begin_limit);
    admin_set_state(client, asking);
}

static void gone(struct admin_client *client, void *arg)
{
    struct asking *asking = admin_state(client);

    if (!asking)
        return;
    if (asking->running)
        worker_eval_cancel(asking->running);
    forget(asking);
}

void admin_eval_add(struct admin_eval *eval, struct admin *admin, struct loop *loop,
                    const struct worker_shared *shared)
{
    *eval = (struct admin_eval){
        .command = { .name = "eval", .begin = begin, .line = on_text, .gone = gone, .arg = eval },
        .loop    = loop,
        .shared  = shared,
    };
    admin_add(admin, &eval->command);
}
