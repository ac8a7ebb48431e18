#include "data/redis_sub.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "data/fault.h"
#include "data/redis.h"
#include "data/redis_backoff.h"
#include "data/redis_command.h"
#include "data/redis_conn.h"
#include "data/redis_reply.h"

struct entry {
    struct list link;
    struct buf  reply;
};

struct redis_sub {
    struct redis_conn    conn;
    struct redis_client *client; /* held: it has the place */
    redis_sub_fn         on_event;
    void                *arg;
    struct buf           command; /* said anew on each connection */
    size_t               channels;
    size_t               confirmed; /* of them, on this connection */
    bool                 is_begun;  /* was confirmed once */
    unsigned             failures;
    struct timer         limit; /* of the time until it is confirmed */
    struct timer         backoff;
    struct list          messages;
    size_t               bytes; /* of their replies */
    struct fault         fault;
};

static struct redis_sub *sub_of(struct redis_conn *conn)
{
    return container_of(conn, struct redis_sub, conn);
}

/* --- what comes ------------------------------------------------------------------------------------ */

static void on_ready(struct redis_conn *conn)
{
    struct redis_sub *sub = sub_of(conn);

    sub->confirmed = 0;
    timer_start(&sub->limit, conn->place->loop, conn->place->connect_ms);
    redis_conn_send(conn, buf_str(&sub->command)); /* alone in an empty buffer: it fits */
}

static void on_confirmed(struct redis_sub *sub)
{
    if (++sub->confirmed < sub->channels)
        return;
    timer_stop(&sub->limit, sub->conn.place->loop);
    if (sub->failures)
        log_info("redis subscription is back", "server=%s", sub->conn.place->name);
    sub->failures = 0;
    sub->is_begun = true;
    sub->on_event(sub, sub->arg);
}

static void keep(struct redis_sub *sub, struct buf *reply)
{
    struct entry *entry = malloc(sizeof(*entry));

    if (!entry) {
        log_error("redis message dropped", "server=%s reason=memory", sub->conn.place->name);
        return;
    }
    entry->reply = *reply;
    buf_init(reply, 0);
    list_append(&sub->messages, &entry->link);
    sub->bytes += entry->reply.len;
    sub->conn.is_paused = sub->bytes >= REDIS_SUB_BYTES_MAX;
    sub->on_event(sub, sub->arg);
}

/* A user may lack the right to a channel: that does not pass by itself. */
static void refuse(struct redis_sub *sub, struct str why)
{
    struct fault fault;

    fault_set(&fault, "redis", "%.*s", STR_ARG(why));
    sub->is_begun = false;
    redis_conn_fail(&sub->conn, &fault);
}

/* { "message", channel, text }, { "pmessage", pattern, channel, text }, { "subscribe", ... } */
static void on_reply(struct redis_conn *conn, struct buf *reply)
{
    struct redis_sub *sub  = sub_of(conn);
    struct str        rest = buf_str(reply);
    struct reply_node head, word;

    if (!reply_next(&rest, &head))
        return;
    if (head.kind == REPLY_FAULT) {
        refuse(sub, head.text);
        return;
    }
    if (head.kind != REPLY_ARRAY || !reply_next(&rest, &word) || word.kind != REPLY_TEXT)
        return;
    if (str_is(word.text, STR("message")) || str_is(word.text, STR("pmessage")))
        keep(sub, reply);
    else if (str_is(word.text, STR("subscribe")) || str_is(word.text, STR("psubscribe")))
        on_confirmed(sub);
}

/* One that greets and says no more may hang, or be no Redis. */
static void on_limit(struct timer *timer)
{
    struct redis_sub *sub = container_of(timer, struct redis_sub, limit);
    struct fault      fault;

    fault_set(&fault, "timeout", "Redis at %s did not confirm the subscription in time",
              sub->conn.place->name);
    redis_conn_fail(&sub->conn, &fault);
}

/* --- lost and dialled anew ---------------------------------------------------------------------------- */

static void on_down(struct redis_conn *conn, const struct fault *fault)
{
    struct redis_sub *sub = sub_of(conn);

    timer_stop(&sub->limit, conn->place->loop);
    if (!sub->is_begun) {
        sub->fault = *fault;
        sub->on_event(sub, sub->arg);
        return;
    }
    if (sub->failures++ == 0)
        log_warn("redis subscription lost", "server=%s reason=%s", conn->place->name, fault->text);
    timer_start(&sub->backoff, conn->place->loop, redis_backoff_ms(sub->failures));
}

static void on_backoff(struct timer *timer)
{
    redis_conn_start(&container_of(timer, struct redis_sub, backoff)->conn);
}

/* --- life ------------------------------------------------------------------------------------------------ */

static const struct redis_conn_events EVENTS = { on_ready, on_reply, on_down };

static void make_command(struct buf *to, bool patterns, const struct str *words, size_t count)
{
    redis_add_head(to, count + 1);
    redis_add_word(to, patterns ? STR("PSUBSCRIBE") : STR("SUBSCRIBE"));
    for (size_t i = 0; i < count; i++)
        redis_add_word(to, words[i]);
}

struct redis_sub *redis_sub_open(struct redis_client *client, bool patterns,
                                 const struct str *words, size_t count, redis_sub_fn on_event,
                                 void *arg)
{
    struct redis_sub *sub = malloc(sizeof(*sub));

    if (!sub)
        return NULL;
    *sub =
        (struct redis_sub){ .client = client, .on_event = on_event, .arg = arg, .channels = count };
    redis_client_hold(client);
    list_init(&sub->messages);
    timer_init(&sub->limit, on_limit);
    timer_init(&sub->backoff, on_backoff);
    redis_conn_init(&sub->conn, redis_client_place(client), &EVENTS);
    buf_init(&sub->command, REDIS_SUB_BYTES_MAX);
    make_command(&sub->command, patterns, words, count);
    if (sub->command.failed) {
        redis_sub_close(sub);
        return NULL;
    }
    redis_conn_start(&sub->conn);
    return sub;
}

void redis_sub_close(struct redis_sub *sub)
{
    if (!sub)
        return;
    timer_stop(&sub->limit, sub->conn.place->loop);
    timer_stop(&sub->backoff, sub->conn.place->loop);
    redis_conn_fini(&sub->conn);
    while (!list_is_empty(&sub->messages))
        redis_sub_next(sub);
    buf_fini(&sub->command);
    redis_client_let_go(sub->client);
    free(sub);
}

bool redis_sub_is_confirmed(const struct redis_sub *sub)
{
    return sub->is_begun;
}

bool redis_sub_is_up(const struct redis_sub *sub)
{
    return sub->conn.state == REDIS_CONN_READY && sub->confirmed == sub->channels;
}

const struct fault *redis_sub_fault(const struct redis_sub *sub)
{
    return fault_is_set(&sub->fault) ? &sub->fault : NULL;
}

/* --- messages ---------------------------------------------------------------------------------------------- */

static struct entry *first_of(const struct redis_sub *sub)
{
    return container_of(sub->messages.next, struct entry, link);
}

bool redis_sub_first(const struct redis_sub *sub, struct redis_message *out)
{
    struct str        rest;
    struct reply_node node[5]; /* the array, its first word, what follows */
    size_t            count = 0;

    *out = (struct redis_message){ .text = STR_NONE };
    if (list_is_empty(&sub->messages))
        return false;
    rest = buf_str(&first_of(sub)->reply);
    while (count < ARRAY_LEN(node) && reply_next(&rest, &node[count]))
        count++;
    if (count == 4) {
        out->channel = node[2].text;
        out->text    = node[3].text;
    } else if (count == 5) {
        out->pattern = node[2].text;
        out->channel = node[3].text;
        out->text    = node[4].text;
    }
    return true;
}

void redis_sub_next(struct redis_sub *sub)
{
    struct entry *entry = first_of(sub);

    list_remove(&entry->link);
    sub->bytes -= entry->reply.len;
    buf_fini(&entry->reply);
    free(entry);
    if (sub->conn.is_paused && sub->bytes < REDIS_SUB_BYTES_MAX / 2) {
        sub->conn.is_paused = false;
        redis_conn_resume(&sub->conn);
    }
}
