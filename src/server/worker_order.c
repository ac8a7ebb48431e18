#include "server/worker_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "server/worker_state.h"

static void deliver_order(struct message *message)
{
    struct worker_order *order = container_of(message, struct worker_order, message);

    order->run(order->worker, order);
    free(order);
}

static void drop_order(struct message *message)
{
    free(container_of(message, struct worker_order, message));
}

struct worker_order *worker_order_new(struct worker *worker,
                                      void (*run)(struct worker *, const struct worker_order *))
{
    struct worker_order *order = calloc(1, sizeof(*order));

    if (!order) {
        log_fatal("out of memory");
        abort();
    }
    order->message = (struct message){ .deliver = deliver_order, .drop = drop_order };
    order->worker  = worker;
    order->run     = run;
    return order;
}

void worker_order_post(struct worker_order *order)
{
    inbox_post(loop_inbox(order->worker->loop), &order->message);
}

void worker_order_send(struct worker *worker,
                       void (*run)(struct worker *, const struct worker_order *), int fd,
                       unsigned number)
{
    struct worker_order *order = worker_order_new(worker, run);

    order->fd     = fd;
    order->number = number;
    worker_order_post(order);
}

/* --- reports: what is said to the control thread ---------------------------------------------------- */

struct report {
    struct message              message;
    const struct worker_shared *shared;
    struct worker_report        report;
    char                        text[]; /* report.text */
};

static void deliver_report(struct message *message)
{
    struct report *r = container_of(message, struct report, message);

    r->shared->on_report(&r->report, r->shared->arg);
    free(r);
}

static void drop_report(struct message *message)
{
    free(container_of(message, struct report, message));
}

void worker_order_report(struct worker *w, enum worker_report_kind kind, unsigned version,
                         const char *text)
{
    size_t         len = text ? strlen(text) + 1 : 0;
    struct report *r   = malloc(sizeof(*r) + len);

    if (!r) {
        log_fatal("out of memory");
        abort();
    }
    r->message = (struct message){ .deliver = deliver_report, .drop = drop_report };
    r->shared  = w->shared;
    r->report  = (struct worker_report){ .kind = kind, .worker = w->id, .version = version };
    if (text)
        r->report.text = memcpy(r->text, text, len);
    inbox_post(w->shared->control, &r->message);
}
