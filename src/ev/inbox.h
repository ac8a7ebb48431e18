/* ev/inbox.h - messages from any thread to the thread of a loop.
 *
 * A push is one compare-and-swap; the eventfd is written only when the inbox was empty, so a
 * batch of completions costs one wake-up. Order of one sender is kept. */
#ifndef EV_INBOX_H
#define EV_INBOX_H

#include <stdbool.h>

struct err;
struct inbox;

/* Owned by the inbox once posted, by the receiver when deliver() runs. */
struct message {
    struct message *next;
    void (*deliver)(struct message *self); /* on the loop's thread */
    void (*drop)(struct message *self);    /* instead, on any thread, when it cannot arrive */
};

/* Any thread. False: the inbox is closed, and drop() has run. */
bool inbox_post(struct inbox *inbox, struct message *message);

/* For the loop, which opens its inbox and frees it at its end. By then nobody may be inside
 * inbox_post(): whoever closes a loop has first stopped, or cut off, all who post to it. */
int  inbox_open(struct inbox **out, struct err *err);
void inbox_free(struct inbox *inbox);

/* Becomes readable when there is something to hand out. To be watched edge-triggered: nobody reads
 * it. */
int inbox_fd(const struct inbox *inbox);
/* Hands out what has come, in order; nothing once the inbox is closed. */
void inbox_hand_out(struct inbox *inbox);

/* Loop's thread. What waits is dropped, and so is all that comes later. Idempotent. */
void inbox_close(struct inbox *inbox);

#endif
