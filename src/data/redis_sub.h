/* data/redis_sub.h - a subscription: a connection of its own that hears channels or patterns. When it is
 * lost it is dialled anew, with a growing pause, and subscribes again; what was published meanwhile
 * is gone. Belongs to the loop's thread. */
#ifndef DATA_REDIS_SUB_H
#define DATA_REDIS_SUB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct fault;
struct redis_client;
struct redis_sub;

enum {
    /* Messages that nobody has taken yet; then nothing is read, and Redis' own bound for slow
     * subscribers (client-output-buffer-limit) counts. */
    REDIS_SUB_BYTES_MAX = 1024 * 1024,
};

struct redis_message {
    struct str text, channel, pattern; /* pattern is empty for a channel's own */
};

/* From the loop's turn: it was confirmed, a message came, or it is over. May close the subscription. */
typedef void (*redis_sub_fn)(struct redis_sub *sub, void *arg);

/* WORDS are COUNT channels, or patterns. CLIENT says where and as whom. NULL: no
 * memory. */
struct redis_sub *redis_sub_open(struct redis_client *client, bool patterns,
                                 const struct str *words, size_t count, redis_sub_fn on_event,
                                 void *arg);
void              redis_sub_close(struct redis_sub *sub); /* NULL is fine */

/* It has been confirmed once: what is published from now on is heard, unless the connection is lost. */
bool redis_sub_is_confirmed(const struct redis_sub *sub);
/* The server hears us now. */
bool redis_sub_is_up(const struct redis_sub *sub);
/* Why it is over: it could not be begun. NULL: it is not over. */
const struct fault *redis_sub_fault(const struct redis_sub *sub);

/* The oldest message; false: none. Its texts are valid until redis_sub_next(). */
bool redis_sub_first(const struct redis_sub *sub, struct redis_message *out);
void redis_sub_next(struct redis_sub *sub);

#endif
