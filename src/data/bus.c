/* Two tables. The bus's, behind a lock for reading and writing, says which ports have a subscriber of
 * which topic: a publisher looks only there. Each port's, its thread's alone, holds the subscribers. A
 * struct bus_link is one topic of one port and stands in both.
 *
 * The message is posted without the lock. A port's memory and its inbox outlive all who may publish:
 * loops are closed last (bind/lend.h). */
#include "data/bus.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/map.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/timer.h"

struct bus_message {
    atomic_uint kept;
    uint64_t    from;
    size_t      topic_bytes, bytes;
    char        at[]; /* the topic, the bytes */
};

/* All that is subscribed to under one text. */
struct topic {
    struct list link; /* in bus->patterns, if it is one */
    struct list links;
    bool        is_pattern;
    size_t      text_bytes;
    char        text[];
};

struct bus {
    pthread_rwlock_t lock; /* guards all but the counters */
    struct map       topics;
    struct list      patterns;
    struct list      ports;
    unsigned         port_count;
    atomic_ullong    published, delivered, lost;
};

struct bus_port {
    struct list  link; /* in bus->ports */
    unsigned     id;   /* below BUS_PORTS_MAX */
    struct bus  *bus;
    struct loop *loop;
    struct map   links; /* by topic */
    struct list  patterns;
    bool         handing_out; /* links stay, also without a subscriber */
    bool         has_empty;   /* such a one is there */

    uint64_t         turn_ns; /* in which... */
    unsigned         handed;  /* ...so many calls were made */
    struct message  *held;    /* deliveries for the next turn, the oldest first */
    struct message **held_last;
    struct timer     next_turn; /* runs while some are held */

    atomic_uint   waiting; /* messages on their way */
    atomic_size_t waiting_bytes;
    atomic_uint   lost; /* not told yet */
    atomic_ullong sent; /* messages so far: their numbers */
};

struct bus_link {
    struct list      of_topic;   /* in topic->links */
    struct list      of_pattern; /* in port->patterns, if it is one */
    struct topic    *topic;
    struct bus_port *port;
    struct list      subs;
    unsigned         count;
};

/* One message on its way to one port. */
struct delivery {
    struct message      message;
    struct bus_port    *port;
    struct bus_message *content;
    uint64_t            number;
};

/* --- patterns --------------------------------------------------------------------------------------- */

static bool is_pattern(struct str text)
{
    return str_find(text, '*') < text.len;
}

/* After a mismatch only the last star need take one byte more. */
bool bus_matches(struct str pattern, struct str topic)
{
    size_t p = 0, t = 0, star = SIZE_MAX, taken = 0;

    while (t < topic.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star  = p++;
            taken = t;
        } else if (p < pattern.len && pattern.at[p] == topic.at[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.at[p] == '*')
        p++;
    return p == pattern.len;
}

/* --- messages --------------------------------------------------------------------------------------- */

static struct bus_message *new_message(uint64_t from, struct str topic, struct str bytes)
{
    struct bus_message *message = malloc(sizeof(*message) + topic.len + bytes.len);

    if (!message)
        return NULL;
    atomic_init(&message->kept, 1);
    message->from        = from;
    message->topic_bytes = topic.len;
    message->bytes       = bytes.len;
    if (topic.len)
        memcpy(message->at, topic.at, topic.len);
    if (bytes.len)
        memcpy(message->at + topic.len, bytes.at, bytes.len);
    return message;
}

struct str bus_message_topic(const struct bus_message *message)
{
    return str_make(message->at, message->topic_bytes);
}

struct str bus_message_bytes(const struct bus_message *message)
{
    return str_make(message->at + message->topic_bytes, message->bytes);
}

uint64_t bus_message_from(const struct bus_message *message)
{
    return message->from;
}

struct bus_message *bus_message_keep(struct bus_message *message)
{
    atomic_fetch_add_explicit(&message->kept, 1, memory_order_relaxed);
    return message;
}

void bus_message_let_go(struct bus_message *message)
{
    if (atomic_fetch_sub_explicit(&message->kept, 1, memory_order_acq_rel) == 1)
        free(message);
}

/* --- the bus ----------------------------------------------------------------------------------------- */

int bus_open(struct bus **out, struct err *err)
{
    struct bus *bus = calloc(1, sizeof(*bus));

    if (!bus)
        return err_set(err, ERR_MEMORY, "no memory for the bus");
    pthread_rwlock_init(&bus->lock, NULL);
    map_init(&bus->topics);
    list_init(&bus->patterns);
    list_init(&bus->ports);
    *out = bus;
    return 0;
}

void bus_close(struct bus *bus)
{
    if (!bus)
        return;
    list_each_safe(node, &bus->ports) free(container_of(node, struct bus_port, link));
    map_fini(&bus->topics);
    pthread_rwlock_destroy(&bus->lock);
    free(bus);
}

void bus_stats(struct bus *bus, struct bus_stats *out)
{
    out->published = atomic_load(&bus->published);
    out->delivered = atomic_load(&bus->delivered);
    out->lost      = atomic_load(&bus->lost);
    pthread_rwlock_rdlock(&bus->lock);
    out->topics = (unsigned)bus->topics.count;
    pthread_rwlock_unlock(&bus->lock);
}

static struct str text_of(const struct topic *topic)
{
    return str_make(topic->text, topic->text_bytes);
}

/* Locked. The topic TEXT, made if there is none; NULL: no memory. */
static struct topic *get_topic(struct bus *bus, struct str text)
{
    struct topic *topic = map_get(&bus->topics, text);

    if (topic)
        return topic;
    topic = malloc(sizeof(*topic) + text.len);
    if (!topic)
        return NULL;
    list_init(&topic->link);
    list_init(&topic->links);
    topic->is_pattern = is_pattern(text);
    topic->text_bytes = text.len;
    memcpy(topic->text, text.at, text.len);
    if (!map_put(&bus->topics, text_of(topic), topic, NULL)) {
        free(topic);
        return NULL;
    }
    if (topic->is_pattern)
        list_append(&bus->patterns, &topic->link);
    return topic;
}

/* Locked. */
static void drop_topic(struct bus *bus, struct topic *topic)
{
    if (!list_is_empty(&topic->links))
        return;
    map_remove(&bus->topics, text_of(topic));
    list_remove(&topic->link);
    free(topic);
}

/* --- publishing --------------------------------------------------------------------------------------- */

/* The ports that one message goes to, each once. */
struct targets {
    struct bus_port *ports[BUS_PORTS_MAX];
    unsigned         count;
    uint64_t         seen[BUS_PORTS_MAX / 64];
};

static void add_targets(struct targets *targets, const struct topic *topic)
{
    list_each(node, &topic->links)
    {
        struct bus_port *port = container_of(node, struct bus_link, of_topic)->port;
        uint64_t         bit  = UINT64_C(1) << port->id % 64;

        if (targets->seen[port->id / 64] & bit)
            continue;
        targets->seen[port->id / 64] |= bit;
        targets->ports[targets->count++] = port;
    }
}

static void find_targets(struct bus *bus, struct str text, struct targets *targets)
{
    struct topic *exact;

    targets->count = 0;
    memset(targets->seen, 0, sizeof(targets->seen));
    pthread_rwlock_rdlock(&bus->lock);
    exact = map_get(&bus->topics, text);
    if (exact && !exact->is_pattern)
        add_targets(targets, exact);
    list_each(node, &bus->patterns)
    {
        struct topic *topic = container_of(node, struct topic, link);

        if (bus_matches(text_of(topic), text))
            add_targets(targets, topic);
    }
    pthread_rwlock_unlock(&bus->lock);
}

static void hand_out(struct bus_port *port, const struct delivery *delivery);

static void end_delivery(struct delivery *delivery)
{
    struct bus_port *port = delivery->port;

    atomic_fetch_sub(&port->waiting, 1);
    atomic_fetch_sub(&port->waiting_bytes, delivery->content->bytes);
    bus_message_let_go(delivery->content);
    free(delivery);
}

static bool has_handed_enough(struct bus_port *port)
{
    uint64_t now = loop_now_ns(port->loop);

    if (port->turn_ns != now)
        port->handed = 0;
    port->turn_ns = now;
    return port->handed >= BUS_HANDED_MAX;
}

static void hold(struct bus_port *port, struct message *message)
{
    message->next    = NULL;
    *port->held_last = message;
    port->held_last  = &message->next;
    if (!timer_is_running(&port->next_turn))
        timer_start_ns(&port->next_turn, port->loop, 0);
}

static struct delivery *take_held(struct bus_port *port)
{
    struct message *message = port->held;

    port->held = message->next;
    if (!port->held)
        port->held_last = &port->held;
    return container_of(message, struct delivery, message);
}

static void hand_out_and_end(struct delivery *delivery)
{
    hand_out(delivery->port, delivery);
    end_delivery(delivery);
}

static void on_next_turn(struct timer *timer)
{
    struct bus_port *port = container_of(timer, struct bus_port, next_turn);

    port->handed = 0;
    while (port->held && port->handed < BUS_HANDED_MAX)
        hand_out_and_end(take_held(port));
    if (port->held)
        timer_start_ns(timer, port->loop, 0);
}

static void on_arrival(struct message *message)
{
    struct delivery *delivery = container_of(message, struct delivery, message);
    struct bus_port *port     = delivery->port;

    if (port->held || has_handed_enough(port))
        hold(port, message);
    else
        hand_out_and_end(delivery);
}

static void on_no_arrival(struct message *message)
{
    end_delivery(container_of(message, struct delivery, message));
}

static bool is_full(struct bus_port *port)
{
    return atomic_load(&port->waiting) >= BUS_WAITING_MAX ||
           atomic_load(&port->waiting_bytes) >= BUS_WAITING_BYTES;
}

static bool send_to(struct bus_port *port, struct bus_message *content)
{
    struct delivery *delivery = is_full(port) ? NULL : malloc(sizeof(*delivery));

    if (!delivery) {
        atomic_fetch_add(&port->lost, 1);
        atomic_fetch_add_explicit(&port->bus->lost, 1, memory_order_relaxed);
        return false;
    }
    *delivery = (struct delivery){
        { NULL, on_arrival, on_no_arrival }, port, content, atomic_fetch_add(&port->sent, 1)
    };
    bus_message_keep(content);
    atomic_fetch_add(&port->waiting, 1);
    atomic_fetch_add(&port->waiting_bytes, content->bytes);
    atomic_fetch_add_explicit(&port->bus->delivered, 1, memory_order_relaxed);
    inbox_post(loop_inbox(port->loop), &delivery->message);
    return true;
}

int bus_publish(struct bus *bus, struct str topic, struct str bytes, struct err *err)
{
    return bus_publish_from(bus, 0, topic, bytes, err);
}

int bus_publish_from(struct bus *bus, uint64_t from, struct str topic, struct str bytes,
                     struct err *err)
{
    struct targets      targets;
    struct bus_message *content;

    if (topic.len > BUS_TOPIC_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "a topic has at most %d bytes", BUS_TOPIC_BYTES_MAX);
    if (bytes.len > BUS_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "a message of the bus has at most %d KiB",
                       BUS_BYTES_MAX / 1024);
    atomic_fetch_add_explicit(&bus->published, 1, memory_order_relaxed);
    find_targets(bus, topic, &targets);
    if (targets.count == 0)
        return 0;
    content = new_message(from, topic, bytes);
    if (!content)
        return err_set(err, ERR_MEMORY, "no memory for a message of the bus");
    for (unsigned i = 0; i < targets.count; i++)
        send_to(targets.ports[i], content);
    bus_message_let_go(content);
    return 0;
}

/* --- ports -------------------------------------------------------------------------------------------- */

int bus_port_open(struct bus_port **out, struct bus *bus, struct loop *loop, struct err *err)
{
    struct bus_port *port = calloc(1, sizeof(*port));
    int              rc   = 0;

    if (!port)
        return err_set(err, ERR_MEMORY, "no memory for a worker's end of the bus");
    port->bus       = bus;
    port->loop      = loop;
    port->held_last = &port->held;
    timer_init(&port->next_turn, on_next_turn);
    map_init(&port->links);
    list_init(&port->patterns);
    pthread_rwlock_wrlock(&bus->lock);
    if (bus->port_count == BUS_PORTS_MAX) {
        rc = err_set(err, ERR_TOO_LARGE, "the bus has no end left for one more worker");
    } else {
        port->id = bus->port_count++;
        list_append(&bus->ports, &port->link);
    }
    pthread_rwlock_unlock(&bus->lock);
    if (rc != 0)
        free(port);
    else
        *out = port;
    return rc;
}

void bus_port_close(struct bus_port *port)
{
    if (!port)
        return;
    timer_stop(&port->next_turn, port->loop);
    while (port->held)
        end_delivery(take_held(port));
    map_fini(&port->links);
}

static void free_link(struct bus_link *link)
{
    struct bus_port *port = link->port;

    map_remove(&port->links, text_of(link->topic));
    list_remove(&link->of_pattern);
    pthread_rwlock_wrlock(&port->bus->lock);
    list_remove(&link->of_topic);
    drop_topic(port->bus, link->topic);
    pthread_rwlock_unlock(&port->bus->lock);
    free(link);
}

static struct bus_link *new_link(struct bus_port *port, struct str text)
{
    struct bus_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->port = port;
    list_init(&link->of_topic);
    list_init(&link->of_pattern);
    list_init(&link->subs);
    pthread_rwlock_wrlock(&port->bus->lock);
    link->topic = get_topic(port->bus, text);
    if (link->topic)
        list_append(&link->topic->links, &link->of_topic);
    pthread_rwlock_unlock(&port->bus->lock);
    if (!link->topic) {
        free(link);
        return NULL;
    }
    if (link->topic->is_pattern)
        list_append(&port->patterns, &link->of_pattern);
    if (!map_put(&port->links, text_of(link->topic), link, NULL)) {
        free_link(link);
        return NULL;
    }
    return link;
}

int bus_subscribe(struct bus_port *port, struct bus_sub *sub, struct str topic, struct err *err)
{
    struct bus_link *link;

    sub->to = NULL;
    list_init(&sub->link);
    if (topic.len > BUS_TOPIC_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "a topic has at most %d bytes", BUS_TOPIC_BYTES_MAX);
    link = map_get(&port->links, topic);
    if (!link)
        link = new_link(port, topic);
    if (!link)
        return err_set(err, ERR_MEMORY, "no memory for a subscription");
    sub->to    = link;
    sub->since = atomic_load(&port->sent);
    link->count++;
    list_append(&link->subs, &sub->link);
    return 0;
}

void bus_unsubscribe(struct bus_sub *sub)
{
    struct bus_link *link = sub->to;

    if (!link)
        return;
    sub->to = NULL;
    list_remove(&sub->link);
    if (--link->count > 0)
        return;
    if (link->port->handing_out)
        link->port->has_empty = true;
    else
        free_link(link);
}

struct str bus_sub_topic(const struct bus_sub *sub)
{
    return text_of(sub->to->topic);
}

/* --- handing out --------------------------------------------------------------------------------------- */

/* A callback may end any subscription, so each is taken from a list of those still to come; it is
 * back in its place before it is called. */
static void hand_to_link(struct bus_link *link, const struct delivery *delivery, unsigned lost)
{
    struct list  to_come = LIST_INIT(to_come);
    struct list *node;

    list_splice(&to_come, &link->subs);
    while ((node = list_take_first(&to_come)) != NULL) {
        struct bus_sub *sub = container_of(node, struct bus_sub, link);

        list_append(&link->subs, node);
        link->port->handed++;
        if (!delivery)
            sub->on_lost(sub, lost);
        else if (delivery->number >= sub->since)
            sub->on_message(sub, delivery->content);
    }
}

static void tell_lost(struct bus_port *port, unsigned lost)
{
    size_t           cursor = 0;
    struct bus_link *link;

    while ((link = map_next(&port->links, &cursor, NULL)) != NULL)
        hand_to_link(link, NULL, lost);
}

static void free_empty_links(struct bus_port *port)
{
    struct bus_link *link;
    size_t           cursor = 0;

    port->has_empty = false;
    while ((link = map_next(&port->links, &cursor, NULL)) != NULL) {
        if (link->count > 0)
            continue;
        free_link(link);
        cursor = 0; /* the map has changed */
    }
}

static void hand_out(struct bus_port *port, const struct delivery *delivery)
{
    struct str       topic = bus_message_topic(delivery->content);
    unsigned         lost  = atomic_exchange(&port->lost, 0);
    struct bus_link *exact = map_get(&port->links, topic);

    port->handing_out = true;
    if (lost > 0)
        tell_lost(port, lost);
    if (exact && !exact->topic->is_pattern)
        hand_to_link(exact, delivery, 0);
    list_each(node, &port->patterns)
    {
        struct bus_link *link = container_of(node, struct bus_link, of_pattern);

        if (bus_matches(text_of(link->topic), topic))
            hand_to_link(link, delivery, 0);
    }
    port->handing_out = false;
    if (port->has_empty)
        free_empty_links(port);
}
