#include "bind/lws_worker.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "bind/lws_state.h"
#include "bind/lws_talk.h"
#include "bind/lws_topics.h"

enum { ENDED_A_TURN = 256 }; /* close frames are a system call each */

static struct str reason_of(unsigned code)
{
    return code == WS_CODE_RESTART ? STR("service restart") : STR("shutdown");
}

static void end_some(struct later *later)
{
    struct lws_worker *worker = container_of(later, struct lws_worker, more);

    for (unsigned i = 0; i < ENDED_A_TURN && !list_is_empty(&worker->ending); i++) {
        struct list *node   = list_take_first(&worker->ending);
        struct lws  *socket = container_of(node, struct lws, of_worker);

        list_append(&worker->sockets, node);
        lws_talk_close(socket, worker->ending_code, reason_of(worker->ending_code));
    }
    if (!list_is_empty(&worker->ending))
        loop_later(worker->loop, &worker->more);
}

void lws_worker_end(struct lws_worker *worker, const struct vm *vm, unsigned code)
{
    worker->ending_code = code;
    list_each_safe(node, &worker->sockets)
    {
        const struct lws *socket = container_of(node, struct lws, of_worker);

        if (socket->vm != vm || socket->closing || socket->rules->options.client)
            continue;
        list_remove(node);
        list_append(&worker->ending, node);
    }
    loop_later(worker->loop, &worker->more);
}

int lws_worker_open(struct lws_worker **out, struct loop *loop, struct bus_port *port,
                    struct err *err)
{
    struct lws_worker *worker = calloc(1, sizeof(*worker));
    int                rc;

    if (!worker)
        return err_set(err, ERR_MEMORY, "no memory for a worker's sockets");
    worker->loop = loop;
    worker->port = port;
    list_init(&worker->sockets);
    list_init(&worker->ending);
    later_init(&worker->more, end_some);
    lws_topics_open(worker);
    rc = ws_shared_open(&worker->shared, loop, err);
    if (rc != 0)
        free(worker);
    else
        *out = worker;
    return rc;
}

void lws_worker_close(struct lws_worker *worker)
{
    if (!worker)
        return;
    later_cancel(&worker->more);
    lws_topics_close(worker);
    ws_shared_close(worker->shared);
    free(worker);
}

struct lws_counts lws_worker_counts(const struct lws_worker *worker)
{
    struct ws_counts counts = ws_shared_counts(worker->shared);

    return (struct lws_counts){ .open     = counts.sockets,
                                .received = counts.messages_in,
                                .sent     = counts.messages_out,
                                .encoded  = counts.encoded,
                                .dropped  = worker->dropped };
}
