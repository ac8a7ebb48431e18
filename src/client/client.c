/* One that is given back goes to the first who waits for its origin; one that is closed makes room for the
 * first whose origin may have another. Whoever waits is told from a `later`: giving back never calls up. */
#include "client/client.h"

#include <assert.h>
#include <stdlib.h>

#include "client/client_dial.h"
#include "client/client_pool.h"
#include "client/client_share.h"
#include "client/client_tls.h"

/* --- serving those who want ------------------------------------------------------------------------ */

/* 1: a connection; 0: one is being opened; -1: a fault. NO_PLACE: it must wait. */
enum { NO_PLACE = 2 };

static bool may_be_shared(const struct client_target *target)
{
    return target->events && (target->is_h2 || (target->tls && target->tls->offers_h2));
}

/* A connection that may have room for more than who opened it. */
static bool is_coming_up(const struct client_origin *origin)
{
    list_each(node, &origin->shared)
    {
        const struct client_conn *conn = container_of(node, struct client_conn, of_shared);

        if (client_share_is_new(conn->share))
            return true;
    }
    return origin->dialling > 0 && !origin->is_unshared;
}

static int serve(struct client_want *want)
{
    struct http_client *client = want->client;

    if (may_be_shared(&want->target)) {
        want->conn = client_pool_take_shared(want->origin, want->target.fresh);
        if (want->conn)
            return 1;
        if (is_coming_up(want->origin))
            return NO_PLACE;
    }
    if (!want->target.fresh) {
        want->conn = client_pool_take_idle(want->origin);
        if (want->conn)
            return 1;
    }
    if (!client_pool_make_room(client, want->origin))
        return NO_PLACE;
    return client_dial_start(want);
}

static void leave_queue(struct client_want *want)
{
    if (!list_is_linked(&want->link))
        return;
    list_remove(&want->link);
    want->client->counts.waiting--;
    want->origin->queued--;
}

/* Serves the first who can be. False: nobody can. */
static bool serve_one(struct http_client *client)
{
    list_each(node, &client->queue)
    {
        struct client_want *want = container_of(node, struct client_want, link);
        int                 what = serve(want);

        if (what == NO_PLACE)
            continue;
        leave_queue(want);
        if (what != 0) {
            client_pool_leave(want);
            want->done(want);
        }
        return true;
    }
    return false;
}

static void on_serve(struct later *later)
{
    struct http_client *client = container_of(later, struct http_client, serve);

    while (serve_one(client))
        continue;
}

static int enter_queue(struct client_want *want)
{
    if (want->client->counts.waiting >= CLIENT_QUEUE_MAX) {
        client_pool_leave(want);
        return client_dial_fail(want, "busy", ERR_BUSY, "too many calls wait for a connection");
    }
    list_append(&want->client->queue, &want->link);
    want->client->counts.waiting++;
    want->origin->queued++;
    loop_later(want->client->loop, &want->client->serve);
    return 0;
}

/* What has become free in this turn is for who waited already. */
static bool comes_behind_others(const struct client_want *want)
{
    const struct http_client *client = want->client;

    return want->origin->queued > 0 ||
           (!list_is_empty(&client->queue) && client->counts.open >= client->options.total);
}

int client_want_start(struct client_want *want, struct http_client *client,
                      const struct client_target *target)
{
    int what;

    list_init(&want->link);
    want->client = client;
    want->target = *target;
    want->origin = client_pool_origin(client, target->key);
    if (!want->origin)
        return client_dial_fail(want, "busy", ERR_MEMORY, "no memory for a connection");
    want->origin->wants++;
    what = comes_behind_others(want) ? NO_PLACE : serve(want);
    if (what == NO_PLACE)
        return enter_queue(want);
    if (what != 0)
        client_pool_leave(want);
    return what;
}

void client_want_stop(struct client_want *want)
{
    struct client_conn *conn = want->conn;

    want->conn = NULL;
    if (conn)
        client_give(conn, true);
    if (!want->origin)
        return;
    leave_queue(want);
    if (want->dialling)
        client_dial_cancel(want);
    client_pool_leave(want);
}

/* --- the client ------------------------------------------------------------------------------------- */

static struct client_options with_defaults(const struct client_options *given)
{
    struct client_options options = given ? *given : (struct client_options){ 0 };

    if (!options.total)
        options.total = CLIENT_TOTAL;
    if (!options.per_origin)
        options.per_origin = CLIENT_PER_ORIGIN;
    if (!options.idle_ms)
        options.idle_ms = CLIENT_IDLE_MS;
    return options;
}

int http_client_open(struct http_client **out, struct loop *loop, struct dns *dns, struct tls *tls,
                     const struct client_options *options, struct err *err)
{
    struct http_client *client = calloc(1, sizeof(*client));

    if (client)
        client->tls = tls_clients_new(tls);
    if (!client || !client->tls) {
        free(client);
        return err_set(err, ERR_MEMORY, "no memory for the HTTP client");
    }
    client->loop    = loop;
    client->dns     = dns;
    client->options = with_defaults(options);
    map_init(&client->origins);
    list_init(&client->idle);
    list_init(&client->queue);
    later_init(&client->serve, on_serve);
    limit_queue_init(&client->idle_limit, loop, client->options.idle_ms, client_pool_on_idle_limit);
    *out = client;
    return 0;
}

void http_client_close(struct http_client *client)
{
    if (!client)
        return;
    client_pool_close_idle(client);
    assert(client->counts.open == 0 && client->counts.waiting == 0);
    later_cancel(&client->serve);
    limit_queue_fini(&client->idle_limit);
    map_fini(&client->origins);
    tls_clients_free(client->tls);
    free(client);
}

struct tls_clients *http_client_tls(const struct http_client *client)
{
    return client->tls;
}

/* A queue of limits has one length, so what lies idle under the old one starts anew. */
void http_client_configure(struct http_client *client, const struct client_options *options)
{
    client->options             = with_defaults(options);
    client->idle_limit.limit_ms = client->options.idle_ms;
    list_each(node, &client->idle)
    {
        struct client_conn *conn = container_of(node, struct client_conn, of_all);

        limit_start(&conn->idle, &client->idle_limit);
    }
    loop_later(client->loop, &client->serve);
}

struct http_client_stats http_client_stats(const struct http_client *client)
{
    return client->counts;
}
