/* A connection is counted from the moment it is dialled for. One that is given back goes to the first
 * who waits for its origin; one that is closed makes room for the first whose origin may have
 * another. Whoever waits is told from a `later`: giving back never calls up. */
#include "http/client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "http/client_share.h"
#include "http/client_setup.h"
#include "http/client_tls.h"
#include "net/dial.h"

struct http_client {
    struct loop             *loop;
    struct dns              *dns;
    struct tls_clients      *tls;
    struct client_options    options;
    struct map               origins; /* key -> struct client_origin */
    struct list              idle;    /* client_conn.of_all */
    struct list              queue;   /* client_want.link */
    struct limit_queue       idle_limit;
    struct later             serve;
    struct http_client_stats counts;
};

/* All with one key; lives while somebody wants, holds or keeps one. */
struct client_origin {
    struct list idle;     /* client_conn.of_origin, newest first */
    struct list shared;   /* client_conn.of_shared */
    unsigned    open;     /* connections, also those that are being opened */
    unsigned    dialling; /* of these */
    /* Who may come to share a connection waits for the one that is being opened, unless it is known that
     * there is none to share, or opening failed: then each opens its own. */
    bool     is_unshared;
    unsigned wants;
    unsigned queued; /* of these, in the queue */
    size_t   key_len;
    char     key[];
};

/* From the name to a connection that requests can go out on. */
struct client_dial {
    struct dial         dial;
    struct client_setup setup;
    struct client_want *want;
    struct client_conn *conn; /* once it is connected */
    uint64_t            begun_ms;
};

/* --- origins -------------------------------------------------------------------------------------- */

static struct str key_of(const struct client_origin *origin)
{
    return str_make(origin->key, origin->key_len);
}

static struct client_origin *find_origin(struct http_client *client, struct str key)
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

/* --- connections ------------------------------------------------------------------------------------ */

static void free_conn(struct client_conn *conn)
{
    if (!conn)
        return;
    client_share_close(conn->share);
    list_remove(&conn->of_shared);
    stream_fini(&conn->stream);
    buf_fini(&conn->input);
    free(conn);
}

static void close_conn(struct client_conn *conn)
{
    struct http_client   *client = conn->client;
    struct client_origin *origin = conn->origin;

    free_conn(conn);
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

static void on_idle_limit(struct limit *limit)
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
static struct client_conn *new_conn(struct http_client *client, struct client_origin *origin,
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

/* --- serving those who want ------------------------------------------------------------------------ */

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

static struct client_conn *take_shared(struct client_origin *origin, bool fresh)
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

static struct client_conn *take_idle(struct http_client *client, struct client_origin *origin)
{
    list_each_safe(node, &origin->idle)
    {
        struct client_conn *conn = container_of(node, struct client_conn, of_origin);

        if (conn->share)
            continue;
        if (!is_too_many(conn) && is_quiet(conn)) {
            take_from_idle(conn);
            client->counts.reused++;
            return conn;
        }
        close_idle(conn);
    }
    return NULL;
}

/* Room for one more of ORIGIN, if need be in the place of idle ones. */
static bool make_room(struct http_client *client, struct client_origin *origin)
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

static void leave_origin(struct client_want *want)
{
    struct client_origin *origin = want->origin;

    want->origin = NULL;
    origin->wants--;
    drop_unused(want->client, origin);
}

static int fail(struct client_want *want, const char *fault, int rc, const char *text)
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
    leave_origin(want);
    want->done(want);
}

/* Whoever wanted it is the first of those who share it. */
static bool make_shared(struct client_dial *dialling)
{
    struct client_want *want = dialling->want;
    struct client_conn *conn = dialling->conn;

    if (client_share_open(&conn->share, &conn->stream, want->client->loop, want->target.events,
                          NULL) != 0)
        return false;
    conn->share->on_change = on_share_change;
    conn->share->arg       = conn;
    conn->share->users     = 1;
    list_append(&want->origin->shared, &conn->of_shared);
    return true;
}

/* The connection is there, and nothing stands in the way of requests. */
static void end_connected(struct client_dial *dialling, bool is_h2)
{
    if (is_h2 && !make_shared(dialling)) {
        fail(dialling->want, "busy", ERR_MEMORY, "no memory for a connection");
        free_conn(dialling->conn);
        dialling->conn = NULL;
    }
    end_dialling(dialling);
}

static void on_conn_event_of_setup(struct client_conn *conn, void *arg)
{
    struct client_dial *dialling = arg;

    client_setup_on_event(&dialling->setup);
}

static void on_set_up(struct client_setup *setup)
{
    struct client_dial *dialling = container_of(setup, struct client_dial, setup);

    if (setup->fault) {
        fail(dialling->want, setup->fault, setup->err.code, setup->err.text);
        free_conn(dialling->conn);
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

static void on_dialled(struct dial *dial)
{
    struct client_dial *dialling = container_of(dial, struct client_dial, dial);
    struct client_want *want     = dialling->want;

    if (dial->fd < 0) {
        fail(want, fault_of(dial), dial->rc, dial->err.text);
    } else {
        dialling->conn = new_conn(want->client, want->origin, dial->fd);
        if (!dialling->conn)
            fail(want, "busy", ERR_MEMORY, "no memory for a connection");
    }
    if (!dialling->conn)
        end_dialling(dialling);
    else if (client_setup_is_needed(want->target.tunnel, want->target.tls))
        set_up(dialling);
    else
        end_connected(dialling, want->target.is_h2);
}

static int dial_for(struct client_want *want)
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
        return fail(want, "busy", ERR_MEMORY, "no memory for a connection");
    want->dialling->want      = want;
    want->dialling->begun_ms  = loop_now_ms(want->client->loop);
    want->dialling->dial.done = on_dialled;
    want->client->counts.open++;
    want->origin->open++;
    want->origin->dialling++;
    dial_start(&want->dialling->dial, want->client->dns, want->client->loop, &to);
    return 0;
}

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
        want->conn = take_shared(want->origin, want->target.fresh);
        if (want->conn)
            return 1;
        if (is_coming_up(want->origin))
            return NO_PLACE;
    }
    if (!want->target.fresh) {
        want->conn = take_idle(client, want->origin);
        if (want->conn)
            return 1;
    }
    if (!make_room(client, want->origin))
        return NO_PLACE;
    return dial_for(want);
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
            leave_origin(want);
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
        leave_origin(want);
        return fail(want, "busy", ERR_BUSY, "too many calls wait for a connection");
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

int client_want(struct client_want *want, struct http_client *client,
                const struct client_target *target)
{
    int what;

    list_init(&want->link);
    want->client = client;
    want->target = *target;
    want->origin = find_origin(client, target->key);
    if (!want->origin)
        return fail(want, "busy", ERR_MEMORY, "no memory for a connection");
    want->origin->wants++;
    what = comes_behind_others(want) ? NO_PLACE : serve(want);
    if (what == NO_PLACE)
        return enter_queue(want);
    if (what != 0)
        leave_origin(want);
    return what;
}

void client_unwant(struct client_want *want)
{
    struct client_conn *conn = want->conn;

    want->conn = NULL;
    if (conn)
        client_give(conn, true);
    if (!want->origin)
        return;
    leave_queue(want);
    if (want->dialling) {
        dial_cancel(&want->dialling->dial);
        client_setup_stop(&want->dialling->setup);
        free_conn(want->dialling->conn);
        free(want->dialling);
        want->dialling = NULL;
        want->client->counts.open--;
        want->origin->open--;
        want->origin->dialling--;
        loop_later(want->client->loop, &want->client->serve);
    }
    leave_origin(want);
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
    limit_queue_init(&client->idle_limit, loop, client->options.idle_ms, on_idle_limit);
    *out = client;
    return 0;
}

static void close_all_idle(struct http_client *client)
{
    while (!list_is_empty(&client->idle))
        close_idle(container_of(client->idle.next, struct client_conn, of_all));
}

void http_client_close(struct http_client *client)
{
    if (!client)
        return;
    close_all_idle(client);
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
