#include "ev/inbox.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"

struct inbox {
    _Atomic(struct message *) newest; /* a stack, or &closed_mark */
    int                       wake_fd;
    bool                      closed; /* loop's thread: what `newest` says to the others */
};

/* Stands in `newest` for ever once the inbox is closed; never looked into. */
static struct message closed_mark;

static struct message *reversed(struct message *newest)
{
    struct message *oldest = NULL;

    while (newest) {
        struct message *next = newest->next;

        newest->next = oldest;
        oldest       = newest;
        newest       = next;
    }
    return oldest;
}

/* A message may close the inbox: those behind it are dropped then, like those still to come. */
static void hand_out_list(struct inbox *inbox, struct message *newest)
{
    struct message *message = reversed(newest);

    while (message) {
        struct message *next = message->next;

        if (inbox->closed)
            message->drop(message);
        else
            message->deliver(message);
        message = next;
    }
}

void inbox_hand_out(struct inbox *inbox)
{
    if (!inbox->closed)
        hand_out_list(inbox, atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire));
}

int inbox_open(struct inbox **out, struct err *err)
{
    struct inbox *inbox = calloc(1, sizeof(*inbox));
    int           rc;

    if (!inbox)
        return err_set(err, ERR_MEMORY, "no memory for an inbox");
    inbox->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (inbox->wake_fd < 0) {
        rc = err_set_errno(err, "eventfd");
        free(inbox);
        return rc;
    }
    *out = inbox;
    return 0;
}

int inbox_fd(const struct inbox *inbox)
{
    return inbox->wake_fd;
}

void inbox_free(struct inbox *inbox)
{
    inbox_close(inbox);
    close(inbox->wake_fd);
    free(inbox);
}

static void wake(struct inbox *inbox)
{
    uint64_t one = 1;
    ssize_t  n   = write(inbox->wake_fd, &one, sizeof(one));

    assert(n == sizeof(one)); /* its count would take 500 years to fill */
    (void)n;
}

bool inbox_post(struct inbox *inbox, struct message *message)
{
    /* Acquired: whoever drops a message frees what the loop's thread looked at before it closed. */
    struct message *newest = atomic_load_explicit(&inbox->newest, memory_order_acquire);

    do {
        if (newest == &closed_mark) {
            message->drop(message);
            return false;
        }
        message->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &newest, message,
                                                    memory_order_release, memory_order_acquire));
    if (!newest)
        wake(inbox);
    return true;
}

void inbox_close(struct inbox *inbox)
{
    if (inbox->closed)
        return;
    inbox->closed = true;
    hand_out_list(inbox,
                  atomic_exchange_explicit(&inbox->newest, &closed_mark, memory_order_acq_rel));
}
