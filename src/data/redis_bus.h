/* data/redis_bus.h - the bus of all machines: what one process publishes (data/bus.h) goes to Redis as
 * well, and what others have published there comes to the workers of this one.
 *
 * One worker of the process hears for all. It says so every quarter of a second, so that another one
 * takes over when it ends, or is stuck. Local messages never take the way by Redis: each process
 * signs what it sends, and leaves out what it hears of its own. */
#ifndef DATA_REDIS_BUS_H
#define DATA_REDIS_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct bus;
struct err;
struct redis_bus;
struct redis_client;
struct redis_hearing;

enum {
    REDIS_BUS_PREFIX_MAX = 128,
    REDIS_BUS_BEAT_MS    = 250,
    REDIS_BUS_LEASE_MS   = 1500, /* without a beat: somebody else hears */
};

/* The process's: who hears, and where it goes. Any thread. */
int  redis_hearing_open(struct redis_hearing **out, struct bus *bus, struct err *err);
void redis_hearing_close(struct redis_hearing *hearing); /* NULL is fine */

/* CLIENT's one bus, made for whoever asks first; loop's thread. PREFIX goes before the names of channels
 * at Redis. Each who gets it lets it go once. NULL: no memory, or the prefix is too long. */
struct redis_bus *redis_bus_get(struct redis_client *client, struct redis_hearing *hearing,
                                struct str prefix);
void              redis_bus_let_go(struct redis_bus *bus);

/* To the other processes only. Does not wait; while Redis is away the message is lost to them, and
 * the log says how many were. */
void redis_bus_publish(struct redis_bus *bus, struct str topic, struct str bytes);

struct redis_bus_stats {
    bool     hears; /* this worker does, for all */
    bool     is_up; /* and Redis has confirmed it */
    uint64_t sent, unsent, heard;
};
void redis_bus_stats(const struct redis_bus *bus, struct redis_bus_stats *out);

#endif
