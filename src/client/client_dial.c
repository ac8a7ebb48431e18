#include "client/client_dial.h"

#include <stdlib.h>

#include "client/client_bridge.h"
#include "client/client_pool.h"
#include "client/client_setup.h"
#include "net/dial.h"

/* From the name to a connection that requests can go out on. */
struct client_dial {
    struct dial         dial;
    struct client_setup setup;
    struct client_want *want;
    struct client_conn *conn; /* once it is connected */
    uint64_t            begun_ms;
};

int client_dial_fail(struct client_want *want, const char *fault, int rc, const char *text)
{
    want->fault = fault;
    err_set(&want->err, rc, "%s", text);
    return -1;
}

static const char *fault_of(const struct dial *dial)
{
    if (dial->rc == ERR_TIMEOUT)
        return "timeout";
    return dial->query.rc != 0 ? "dns" : "refused";
}

/* It has come to something if it has a connection. */
static void end_dialling(struct client_dial *dialling)
{
    struct client_want *want   = dialling->want;
    struct http_client *client = want->client;

    want->dialling = NULL;
    want->conn     = dialling->conn;
    free(dialling);
    want->origin->dialling--;
    want->origin->is_unshared = !want->conn || !want->conn->share;
    if (!want->conn) {
        client->counts.open--;
        want->origin->open--;
    }
    loop_later(client->loop, &client->serve);
    client_pool_leave(want);
    want->done(want);
}

/* The connection is there, and nothing stands in the way of requests. */
static void end_connected(struct client_dial *dialling, bool is_h2)
{
    if (is_h2 && !client_pool_share(dialling->conn, dialling->want->target.events)) {
        client_dial_fail(dialling->want, "busy", ERR_MEMORY, "no memory for a connection");
        client_pool_free(dialling->conn);
        dialling->conn = NULL;
    }
    end_dialling(dialling);
}

static void on_conn_event_of_setup(struct client_conn *conn, void *arg)
{
    struct client_dial *dialling = arg;

    client_setup_on_event(&dialling->setup);
}

/* What went wrong on the way to the proxy looks like an end from here. */
static void fail_setup(struct client_dial *dialling)
{
    struct client_want        *want  = dialling->want;
    const struct client_setup *setup = &dialling->setup;
    const char                *why   = client_bridge_fault(dialling->conn->bridge);
    struct err                 err;

    if (*why) {
        err_set(&err, ERR_CLOSED, "the proxy: %s", why);
        client_dial_fail(want, "tls", err.code, err.text);
    } else {
        client_dial_fail(want, setup->fault, setup->err.code, setup->err.text);
    }
}

static void on_set_up(struct client_setup *setup)
{
    struct client_dial *dialling = container_of(setup, struct client_dial, setup);

    if (setup->fault) {
        fail_setup(dialling);
        client_pool_free(dialling->conn);
        dialling->conn = NULL;
        end_dialling(dialling);
    } else {
        end_connected(dialling, setup->is_h2);
    }
}

/* What is left of the time that connecting may take. */
static uint64_t rest_ms(const struct client_dial *dialling)
{
    uint64_t limit = dialling->want->target.connect_ms;
    uint64_t past  = loop_now_ms(dialling->want->client->loop) - dialling->begun_ms;

    return !limit ? 0 : past < limit ? limit - past : 1;
}

static void set_up(struct client_dial *dialling)
{
    const struct client_target *target = &dialling->want->target;

    dialling->setup = (struct client_setup){
        .stream   = &dialling->conn->stream,
        .loop     = dialling->want->client->loop,
        .clients  = dialling->want->client->tls,
        .tunnel   = target->tunnel,
        .tls      = target->tls,
        .key      = target->key,
        .limit_ms = rest_ms(dialling),
        .done     = on_set_up,
    };
    dialling->conn->on_event = on_conn_event_of_setup;
    dialling->conn->arg      = dialling;
    client_setup_start(&dialling->setup);
}

/* Over FD, or over the near end of a bridge. NULL: WANT says why. */
static struct client_conn *new_conn(struct client_want *want, int fd)
{
    struct http_client      *client = want->client;
    const struct client_tls *tls    = want->target.proxy_tls;
    struct client_bridge    *bridge = NULL;
    struct client_conn      *conn;
    struct err               err;

    if (tls && !(bridge = client_bridge_open(client->loop, client->tls, tls, fd, &fd, &err))) {
        client_dial_fail(want, err.code == ERR_SYSTEM ? "busy" : "tls", err.code, err.text);
        return NULL;
    }
    conn = client_pool_new(client, want->origin, fd);
    if (!conn) {
        client_bridge_close(bridge);
        client_dial_fail(want, "busy", ERR_MEMORY, "no memory for a connection");
        return NULL;
    }
    conn->bridge = bridge;
    return conn;
}

static void on_dialled(struct dial *dial)
{
    struct client_dial *dialling = container_of(dial, struct client_dial, dial);
    struct client_want *want     = dialling->want;

    if (dial->fd < 0)
        client_dial_fail(want, fault_of(dial), dial->rc, dial->err.text);
    else
        dialling->conn = new_conn(want, dial->fd);
    if (!dialling->conn)
        end_dialling(dialling);
    else if (client_setup_is_needed(want->target.tunnel, want->target.tls))
        set_up(dialling);
    else
        end_connected(dialling, want->target.is_h2);
}

int client_dial_start(struct client_want *want)
{
    struct client_target *target = &want->target;
    struct dial_target    to     = {
               .host       = target->host,
               .port       = target->port,
               .path       = target->path,
               .timeout_ms = target->connect_ms,
    };

    want->dialling = calloc(1, sizeof(*want->dialling));
    if (!want->dialling)
        return client_dial_fail(want, "busy", ERR_MEMORY, "no memory for a connection");
    want->dialling->want      = want;
    want->dialling->begun_ms  = loop_now_ms(want->client->loop);
    want->dialling->dial.done = on_dialled;
    want->client->counts.open++;
    want->origin->open++;
    want->origin->dialling++;
    dial_start(&want->dialling->dial, want->client->dns, want->client->loop, &to);
    return 0;
}

void client_dial_cancel(struct client_want *want)
{
    dial_cancel(&want->dialling->dial);
    client_setup_stop(&want->dialling->setup);
    client_pool_free(want->dialling->conn);
    free(want->dialling);
    want->dialling = NULL;
    want->client->counts.open--;
    want->origin->open--;
    want->origin->dialling--;
    loop_later(want->client->loop, &want->client->serve);
}
