/* data/bus.h - messages by topic, from any thread of the process to subscribers on every worker (API,
 * section 10).
 *
 * A message is copied once, when it is published; workers and subscribers share it. Each worker with
 * a matching subscriber gets one entry in its inbox, so the order of one publisher is kept, and its
 * port hands the message to its own subscribers in the loop's turn. What a slow worker has not taken
 * yet is bounded: beyond BUS_WAITING_MAX messages it loses some, and its subscribers are told how many.
 * So is what it hands out in a turn, or a storm in a room of thousands would keep requests waiting.
 *
 * A topic to subscribe to may hold `*`, which stands for any bytes, none included: "room.*". */
#ifndef DATA_BUS_H
#define DATA_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"

struct bus;
struct bus_link;
struct bus_message;
struct bus_port;
struct err;
struct loop;

enum {
    BUS_TOPIC_BYTES_MAX = 512,
    BUS_BYTES_MAX       = 1024 * 1024, /* of one message */
    BUS_WAITING_MAX     = 65536,       /* messages on their way to one worker, */
    BUS_WAITING_BYTES   = 64 << 20,    /* and their bytes */
    BUS_PORTS_MAX       = 1024,
    BUS_HANDED_MAX =
        4096, /* calls of subscribers in a turn; the message that exceeds it is the last */
};

int  bus_open(struct bus **out, struct err *err);
void bus_close(struct bus *bus); /* ports are closed, nobody publishes any more; NULL is fine */

/* --- messages: any thread --------------------------------------------------------------------------- */

/* 0; ERR_TOO_LARGE: topic or bytes; ERR_MEMORY: some worker may not get it. */
int bus_publish(struct bus *bus, struct str topic, struct str bytes, struct err *err);
/* The same of somebody who is to know the message again: FROM is a number of the caller's own. */
int bus_publish_from(struct bus *bus, uint64_t from, struct str topic, struct str bytes,
                     struct err *err);

/* Valid while the message is kept. */
struct str          bus_message_topic(const struct bus_message *message);
struct str          bus_message_bytes(const struct bus_message *message);
uint64_t            bus_message_from(const struct bus_message *message); /* 0: nobody */
struct bus_message *bus_message_keep(struct bus_message *message);
void                bus_message_let_go(struct bus_message *message);

/* --- a worker's end: its thread alone ---------------------------------------------------------------- */

int bus_port_open(struct bus_port **out, struct bus *bus, struct loop *loop, struct err *err);
/* No subscriber may be left. Before the loop; its memory goes with the bus, since messages may be on
 * their way. NULL is fine. */
void bus_port_close(struct bus_port *port);

/* One subscription; its owner's memory. Both callbacks run from the loop's turn; they may end any
 * subscription, their own too, and begin none. */
struct bus_sub {
    struct list      link;
    struct bus_link *to;    /* NULL: not subscribed */
    uint64_t         since; /* private: what was on its way before is not for us */
    /* Keep the message to have it later. */
    void (*on_message)(struct bus_sub *sub, struct bus_message *message);
    /* COUNT messages to this worker were lost, some of which may have been for this one. */
    void (*on_lost)(struct bus_sub *sub, unsigned count);
};

/* Set the callbacks before. 0; ERR_TOO_LARGE: the topic; ERR_MEMORY. */
int  bus_subscribe(struct bus_port *port, struct bus_sub *sub, struct str topic, struct err *err);
void bus_unsubscribe(struct bus_sub *sub); /* idempotent */

/* What it subscribed to; valid until it ends. */
struct str bus_sub_topic(const struct bus_sub *sub);

/* Whether TOPIC is one that PATTERN means. */
bool bus_matches(struct str pattern, struct str topic);

struct bus_stats {
    uint64_t published, delivered, lost; /* since the start; delivered: to workers */
    unsigned topics;                     /* subscribed to */
};
void bus_stats(struct bus *bus, struct bus_stats *out);

#endif
