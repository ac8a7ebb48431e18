/* A connection is counted from the moment it is dialled for, until it is closed. */
#include "client/client_pool.h"

#include <stdlib.h>

#include "client/client_bridge.h"
#include "client/client_share.h"

/* --- origins -------------------------------------------------------------------------------------- */

static struct str key_of(const struct client_origin *origin)
{
    return str_make(origin->key, origin->key_len);
}

struct client_origin *client_pool_origin(struct http_client *client, struct str key)
{
    struct client_origin *origin = map_get(&client->origins, key);

    if (origin)
        return origin;
    origin = malloc(sizeof(*origin) + key.len);
    if (!origin)
        return NULL;
    *origin = (struct client_origin){ .key_len = key.len };
    memcpy(origin->key, key.at, key.len);
    list_init(&origin->idle);
    list_init(&origin->shared);
    if (!map_put(&client->origins, key_of(origin), origin, NULL)) {
        free(origin);
        return NULL;
    }
    return origin;
}

static void drop_unused(struct http_client *client, struct client_origin *origin)
{
    if (origin->open || origin->wants)
        return;
    map_remove(&client->origins, key_of(origin));
    free(origin);
}

void client_pool_leave(struct client_want *want)
{
    struct client_origin *origin = want->origin;

    want->origin = NULL;
    origin->wants--;
    drop_unused(want->client, origin);
}

/* --- connections ------------------------------------------------------------------------------------ */

void client_pool_free(struct client_conn *conn)
{
    if (!conn)
        return;
    client_share_close(conn->share);
    list_remove(&conn->of_shared);
    stream_fini(&conn->stream);
    client_bridge_close(conn->bridge);
    buf_fini(&conn->input);
    free(conn);
}

static void close_conn(struct client_conn *conn)
{
    struct http_client   *client = conn->client;
    struct client_origin *origin = conn->origin;

    client_pool_free(conn);
    client->counts.open--;
    origin->open--;
    drop_unused(client, origin);
    loop_later(client->loop, &client->serve);
}

static void take_from_idle(struct client_conn *conn)
{
    limit_stop(&conn->idle);
    list_remove(&conn->of_origin);
    list_remove(&conn->of_all);
    conn->client->counts.idle--;
}

static void close_idle(struct client_conn *conn)
{
    take_from_idle(conn);
    close_conn(conn);
}

static bool is_idle(const struct client_conn *conn)
{
    return list_is_linked(&conn->of_all);
}

void client_pool_on_idle_limit(struct limit *limit)
{
    close_idle(container_of(limit, struct client_conn, idle));
}

/* Looks whether it is still there, for the event of a FIN may be on its way. With TLS, bytes may be no
 * more than a ticket. */
static bool is_quiet(struct client_conn *conn)
{
    char byte;

    if (conn->share)
        return client_share_look(conn->share) && !client_share_is_leaving(conn->share);
    return !conn->stream.saw_fin && stream_read(&conn->stream, &byte, 1) == STREAM_WAIT;
}

/* An idle connection has nothing to say: bytes would be taken for the next response's. */
static void on_stream_event(struct stream *stream, void *arg)
{
    struct client_conn *conn = arg;

    if (conn->share)
        client_share_on_event(conn->share);
    else if (!is_idle(conn))
        conn->on_event(conn, conn->arg);
    else if (stream->saw_err || !is_quiet(conn))
        close_idle(conn);
}

/* More than there may be, since the bounds were lowered. */
static bool is_too_many(const struct client_conn *conn)
{
    const struct http_client *client = conn->client;

    return client->counts.open > client->options.total ||
           conn->origin->open > client->options.per_origin;
}

/* A share of which nobody wants more than what it still says. */
static void close_unused(struct client_conn *conn)
{
    if (conn->share->users > 0 || !client_share_is_leaving(conn->share))
        return;
    if (is_idle(conn))
        take_from_idle(conn);
    close_conn(conn);
}

static void on_share_change(struct client_share *share)
{
    struct client_conn *conn = share->arg;

    if (client_share_is_leaving(share))
        list_remove(&conn->of_shared);
    loop_later(conn->client->loop, &conn->client->serve);
    close_unused(conn);
}

bool client_pool_share(struct client_conn *conn, const struct h2_client_events *events)
{
    if (client_share_open(&conn->share, &conn->stream, conn->client->loop, events, NULL) != 0)
        return false;
    conn->share->on_change = on_share_change;
    conn->share->arg       = conn;
    conn->share->users     = 1;
    list_append(&conn->origin->shared, &conn->of_shared);
    return true;
}

static void keep(struct client_conn *conn)
{
    struct http_client *client = conn->client;

    list_prepend(&conn->origin->idle, &conn->of_origin);
    list_append(&client->idle, &conn->of_all);
    limit_start(&conn->idle, &client->idle_limit);
    client->counts.idle++;
    loop_later(client->loop, &client->serve);
}

static void give_share(struct client_conn *conn)
{
    conn->served++;
    if (--conn->share->users > 0)
        loop_later(conn->client->loop, &conn->client->serve); /* there may be room */
    else if (is_too_many(conn) || client_share_is_leaving(conn->share))
        close_conn(conn);
    else
        keep(conn);
}

void client_give(struct client_conn *conn, bool at_rest)
{
    if (conn->share) {
        give_share(conn);
        return;
    }
    if (!at_rest || is_too_many(conn) || !is_quiet(conn)) {
        close_conn(conn);
        return;
    }
    buf_fini(&conn->input);
    conn->input_at = 0;
    conn->served++;
    keep(conn);
}

/* FD is taken, also on failure. */
struct client_conn *client_pool_new(struct http_client *client, struct client_origin *origin,
                                    int fd)
{
    struct client_conn *conn = calloc(1, sizeof(*conn));

    if (!conn || stream_init(&conn->stream, client->loop, fd, on_stream_event, conn) != 0) {
        free(conn);
        return NULL;
    }
    conn->client = client;
    conn->origin = origin;
    list_init(&conn->of_origin);
    list_init(&conn->of_all);
    list_init(&conn->of_shared);
    limit_init(&conn->idle);
    buf_init(&conn->input, SIZE_MAX);
    client->counts.opened++;
    return conn;
}

/* --- lending ------------------------------------------------------------------------------------------ */

/* Room for another call; one that lies idle is looked at first, and closed if it has ended. FRESH: only
 * where calls are under way. */
static bool can_be_shared(struct client_conn *conn, bool fresh)
{
    if (!is_idle(conn))
        return client_share_has_room(conn->share);
    if (fresh)
        return false;
    if (is_quiet(conn))
        return client_share_has_room(conn->share);
    close_idle(conn);
    return false;
}

struct client_conn *client_pool_take_shared(struct client_origin *origin, bool fresh)
{
    list_each_safe(node, &origin->shared)
    {
        struct client_conn *conn = container_of(node, struct client_conn, of_shared);

        if (!can_be_shared(conn, fresh))
            continue;
        if (is_idle(conn))
            take_from_idle(conn);
        conn->share->users++;
        conn->client->counts.reused++;
        return conn;
    }
    return NULL;
}

struct client_conn *client_pool_take_idle(struct client_origin *origin)
{
    list_each_safe(node, &origin->idle)
    {
        struct client_conn *conn = container_of(node, struct client_conn, of_origin);

        if (conn->share)
            continue;
        if (!is_too_many(conn) && is_quiet(conn)) {
            take_from_idle(conn);
            conn->client->counts.reused++;
            return conn;
        }
        close_idle(conn);
    }
    return NULL;
}

/* Room for one more of ORIGIN, if need be in the place of idle ones. */
bool client_pool_make_room(struct http_client *client, struct client_origin *origin)
{
    while (origin->open >= client->options.per_origin) {
        if (list_is_empty(&origin->idle))
            return false;
        close_idle(container_of(origin->idle.prev, struct client_conn, of_origin));
    }
    while (client->counts.open >= client->options.total) {
        if (list_is_empty(&client->idle))
            return false;
        close_idle(container_of(client->idle.next, struct client_conn, of_all));
    }
    return true;
}

void client_pool_close_idle(struct http_client *client)
{
    while (!list_is_empty(&client->idle))
        close_idle(container_of(client->idle.next, struct client_conn, of_all));
}
