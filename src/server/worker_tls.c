#include "server/worker_tls.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "http/serve.h"
#include "server/tls_certs.h"
#include "server/tls_files.h"
#include "server/worker_order.h"
#include "server/worker_state.h"

static int use(struct worker *w, const struct tls_files *files, struct err *err)
{
    struct tls_server_options options = *tls_files_options(files);
    struct tls_server        *server;
    int                       rc;

    options.tickets = tls_certs_tickets(w->shared->certs);
    rc              = tls_server_open(&server, w->lend.tls, &options, err);
    if (rc != 0)
        return rc;
    http_server_use_tls(w->http, server);
    tls_server_close(w->tls_server);
    w->tls_server = server;
    return 0;
}

int worker_tls_open(struct worker *w, struct err *err)
{
    return w->shared->certs ? use(w, tls_certs_files(w->shared->certs), err) : 0;
}

void worker_tls_close(struct worker *w)
{
    tls_server_close(w->tls_server);
    w->tls_server = NULL;
}

/* --- new certificates ------------------------------------------------------------------------------- */

static void take(struct worker *w, const struct worker_order *order)
{
    struct err err = { 0 };

    if (use(w, order->object, &err) != 0)
        log_error("a worker keeps its old certificates", "worker=%u error=%s", w->id, err.text);
    tls_files_drop(order->object);
}

static void drop(struct message *message)
{
    struct worker_order *order = container_of(message, struct worker_order, message);

    tls_files_drop(order->object);
    free(order);
}

void worker_tls_send(struct worker *w, struct tls_files *files)
{
    struct worker_order *order = worker_order_new(w, take);

    order->message.drop = drop;
    order->object       = tls_files_hold(files);
    worker_order_post(order);
}
