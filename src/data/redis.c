#include "data/redis.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "data/fault.h"
#include "data/redis_backoff.h"
#include "data/redis_call.h"
#include "data/redis_pipe.h"
#include "data/redis_seats.h"
#include "data/redis_tls.h"

/* A connection that did not last so long counts as a failure, or a server that takes it and hangs up
 * would be dialled without a pause. */
enum { STEADY_MS = 1000 };

struct redis {
    struct loop *loop;
    struct dns  *dns;
    struct tls  *tls;
    struct list  clients;
    uint64_t     calls, lost;
};

struct redis_client {
    struct list          link;
    struct redis        *redis;
    struct redis_options options; /* the identity */
    struct redis_place   place;
    struct redis_tls     tls;
    unsigned             users;
    struct redis_pipe    pipe; /* the shared connection */
    struct redis_seats   seats;

    /* Set while the server is away, so that nobody waits for it. */
    bool         is_down;
    struct fault why;
    unsigned     failures; /* in a row */
    uint64_t     since_ms; /* ready, or down */
    struct timer backoff;
    void        *slot;
    struct later bury; /* once nobody uses it */
};

static uint64_t now_ms(const struct redis_client *client)
{
    return loop_now_ms(client->redis->loop);
}

/* --- up and down ----------------------------------------------------------------------------------- */

static struct redis_client *client_of(struct redis_pipe *pipe)
{
    return container_of(pipe, struct redis_client, pipe);
}

static void on_ready(struct redis_pipe *pipe)
{
    struct redis_client *client = client_of(pipe);
    uint64_t             now    = now_ms(client);

    if (client->is_down)
        log_info("redis is back", "server=%s after_ms=%u", client->place.name,
                 (unsigned)(now - client->since_ms));
    client->is_down  = false;
    client->since_ms = now;
}

static void go_down(struct redis_client *client, const struct fault *fault)
{
    if (!client->is_down) {
        log_warn("redis is away", "server=%s reason=%s", client->place.name, fault->text);
        client->since_ms = now_ms(client);
    }
    client->is_down = true;
    fault_set(&client->why, "unavailable", "%s", fault->text);
}

/* One that was lost is dialled at once, and calls wait for it: a server that closes idle connections,
 * or was started anew, hurts nobody. After a failure they do not wait any more. */
static void on_down(struct redis_pipe *pipe, const struct fault *fault)
{
    struct redis_client *client = client_of(pipe);
    bool                 lasted =
        !client->is_down && client->since_ms && now_ms(client) - client->since_ms >= STEADY_MS;
    bool is_hung = strcmp(fault->code, "timeout") == 0;

    client->redis->lost++;
    if (lasted && !is_hung) {
        client->failures = 0;
        client->since_ms = 0;
        redis_conn_start(&pipe->conn);
        return;
    }
    client->failures = is_hung ? 1 : client->failures + 1;
    go_down(client, fault);
    timer_start(&client->backoff, client->redis->loop, redis_backoff_ms(client->failures));
}

static void on_backoff(struct timer *timer)
{
    struct redis_client *client = container_of(timer, struct redis_client, backoff);

    if (client->pipe.conn.state == REDIS_CONN_OFF)
        redis_conn_start(&client->pipe.conn);
}

static const struct redis_pipe_events EVENTS = { on_ready, NULL, on_down };

/* --- clients --------------------------------------------------------------------------------------- */

static void free_client(struct redis_client *client)
{
    struct fault fault;

    fault_set(&fault, "closed", "the client was closed");
    timer_stop(&client->backoff, client->redis->loop);
    later_cancel(&client->bury);
    list_remove(&client->link);
    redis_pipe_end(&client->pipe, &fault);
    redis_pipe_fini(&client->pipe);
    redis_seats_fini(&client->seats, &fault);
    redis_tls_fini(&client->tls);
    free(client);
}

static void on_bury(struct later *later)
{
    struct redis_client *client = container_of(later, struct redis_client, bury);

    if (client->users == 0)
        free_client(client);
}

static struct redis_client *new_client(struct redis *redis, const struct redis_options *options)
{
    struct redis_client *client = malloc(sizeof(*client));

    if (!client)
        return NULL;
    *client       = (struct redis_client){ .redis = redis, .options = *options };
    client->place = (struct redis_place){ .loop       = redis->loop,
                                          .dns        = redis->dns,
                                          .target     = options->target,
                                          .connect_ms = options->connect_ms };
    redis_target_place(&options->target, client->place.name);
    redis_tls_init(&client->tls, redis->tls, &client->place.target);
    if (options->target.has_tls)
        client->place.tls = &client->tls;
    redis_pipe_init(&client->pipe, &client->place, &EVENTS);
    redis_seats_init(&client->seats, &client->place);
    client->seats.seats_max   = options->pool;
    client->seats.waiting_max = options->queue;
    client->seats.timeout_ms  = options->timeout_ms;
    timer_init(&client->backoff, on_backoff);
    later_init(&client->bury, on_bury);
    list_append(&redis->clients, &client->link);
    return client;
}

static struct redis_client *find_client(struct redis *redis, const struct redis_options *options)
{
    list_each(node, &redis->clients)
    {
        struct redis_client *client = container_of(node, struct redis_client, link);

        if (memcmp(&client->options, options, sizeof(*options)) == 0)
            return client;
    }
    return NULL;
}

struct redis_client *redis_client_get(struct redis *redis, const struct redis_options *options)
{
    struct redis_client *client = find_client(redis, options);

    if (!client)
        client = new_client(redis, options);
    if (client)
        client->users++;
    return client;
}

void redis_client_hold(struct redis_client *client)
{
    client->users++;
}

void redis_client_let_go(struct redis_client *client)
{
    assert(client->users > 0);
    if (--client->users == 0)
        loop_later(client->redis->loop, &client->bury);
}

const struct redis_place *redis_client_place(const struct redis_client *client)
{
    return &client->place;
}

void **redis_client_slot(struct redis_client *client)
{
    return &client->slot;
}

/* --- calls ------------------------------------------------------------------------------------------- */

static int start_shared(struct redis_client *client, struct redis_call *call)
{
    if (client->pipe.count >= client->options.queue)
        return fault_set(
            &call->fault, "busy",
            "%u commands wait for Redis at %s already: give the client a larger `queue`, "
            "or send it less",
            client->pipe.count, client->place.name);
    call->due_ms = now_ms(client) + client->options.timeout_ms;
    if (redis_pipe_send(&client->pipe, call))
        return 0;
    return fault_set(&call->fault, "busy", "too much waits to be sent to Redis at %s",
                     client->place.name);
}

int redis_start(struct redis_client *client, struct redis_call *call)
{
    fault_clear(&call->fault);
    client->redis->calls++;
    if (client->is_down && !call->seat)
        return fault_set(&call->fault, client->why.code, "%s", client->why.text);
    return call->alone ? redis_seats_start(&client->seats, call) : start_shared(client, call);
}

void redis_cancel(struct redis_client *client, struct redis_call *call)
{
    if (call->alone)
        redis_seats_cancel(&client->seats, call);
    else
        call->is_orphan = true;
}

void redis_give_up(struct redis_client *client, struct redis_seat *seat)
{
    redis_seats_give_up(&client->seats, seat);
}

/* --- the worker's ------------------------------------------------------------------------------------- */

int redis_open(struct redis **out, struct loop *loop, struct dns *dns, struct tls *tls,
               struct err *err)
{
    struct redis *redis = malloc(sizeof(*redis));

    if (!redis)
        return err_set(err, ERR_MEMORY, "out of memory");
    *redis = (struct redis){ .loop = loop, .dns = dns, .tls = tls };
    list_init(&redis->clients);
    *out = redis;
    return 0;
}

void redis_close(struct redis *redis)
{
    if (!redis)
        return;
    while (!list_is_empty(&redis->clients)) {
        struct redis_client *client = container_of(redis->clients.next, struct redis_client, link);

        assert(client->users == 0);
        free_client(client);
    }
    free(redis);
}

void redis_stats(const struct redis *redis, struct redis_stats *out)
{
    *out = (struct redis_stats){ .calls = redis->calls, .lost = redis->lost };
    list_each(node, &redis->clients)
    {
        const struct redis_client *client = container_of(node, struct redis_client, link);

        out->connections += client->pipe.conn.state == REDIS_CONN_READY;
        out->connections += redis_seats_ready(&client->seats);
        out->pending += client->pipe.count + redis_seats_pending(&client->seats);
    }
}
