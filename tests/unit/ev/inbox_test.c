#include "ev/inbox.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "ev/loop.h"
#include "support/check.h"

static struct loop *loop;

static void open_loop(void)
{
    struct err err;

    CHECK(loop_open(&loop, &err) == 0);
}

static void close_loop(void)
{
    loop_close(loop);
    loop = NULL;
}

struct letter {
    struct message message;
    unsigned       number;
    atomic_uint    delivered;
    atomic_uint    dropped;
    bool           closes; /* the inbox */
    bool           last;
};

static unsigned expected; /* number of the next letter */

static void deliver(struct message *message)
{
    struct letter *letter = container_of(message, struct letter, message);

    CHECK_INT(letter->number, expected);
    expected++;
    letter->delivered++;
    if (letter->closes)
        inbox_close(loop_inbox(loop));
    if (letter->last)
        loop_break(loop);
}

static void drop(struct message *message)
{
    container_of(message, struct letter, message)->dropped++;
}

static void letter_init(struct letter *letter, unsigned number)
{
    *letter = (struct letter){ .message = { .deliver = deliver, .drop = drop }, .number = number };
}

TEST(letters_arrive_in_the_order_of_their_posting)
{
    struct letter letters[5];

    open_loop();
    expected = 0;
    for (unsigned i = 0; i < 5; i++) {
        letter_init(&letters[i], i);
        letters[i].last = i == 4;
        CHECK(inbox_post(loop_inbox(loop), &letters[i].message));
    }
    loop_run(loop);
    CHECK_INT(expected, 5);
    close_loop();
}

TEST(a_closed_inbox_drops_what_waits_and_what_comes)
{
    struct letter before, after;

    open_loop();
    letter_init(&before, 0);
    letter_init(&after, 1);
    CHECK(inbox_post(loop_inbox(loop), &before.message));
    inbox_close(loop_inbox(loop));
    inbox_close(loop_inbox(loop));
    CHECK_INT(before.dropped, 1);
    CHECK(!inbox_post(loop_inbox(loop), &after.message));
    CHECK_INT(after.dropped, 1);
    close_loop();
    CHECK_INT(before.delivered + after.delivered, 0);
}

TEST(a_letter_that_closes_the_inbox_drops_those_behind_it)
{
    struct letter first, second;

    open_loop();
    expected = 0;
    letter_init(&first, 0);
    letter_init(&second, 1);
    first.closes = first.last = true;
    CHECK(inbox_post(loop_inbox(loop), &first.message));
    CHECK(inbox_post(loop_inbox(loop), &second.message));
    loop_run(loop);
    CHECK_INT(first.delivered, 1);
    CHECK_INT(second.delivered, 0);
    CHECK_INT(second.dropped, 1);
    close_loop();
}

/* --- many senders --------------------------------------------------------------------------- */

enum { SENDERS = 4, LETTERS = 20000 };

struct sender {
    pthread_t      thread;
    struct inbox  *inbox;
    struct letter *letters;
    unsigned       arrived; /* on the loop's thread */
};

static struct letter post[SENDERS][LETTERS];
static struct sender senders[SENDERS];
static unsigned      arrived;

static void deliver_counted(struct message *message)
{
    struct letter *letter = container_of(message, struct letter, message);
    unsigned       who    = (unsigned)(letter - &post[0][0]) / LETTERS;

    CHECK_INT(letter->number, senders[who].arrived);
    senders[who].arrived++;
    letter->delivered++;
    if (++arrived == SENDERS * LETTERS)
        loop_break(loop);
}

static void *send_all(void *arg)
{
    struct sender *sender = arg;

    for (unsigned i = 0; i < LETTERS; i++)
        inbox_post(sender->inbox, &sender->letters[i].message);
    return NULL;
}

static void start_senders(void (*on_arrival)(struct message *message))
{
    arrived = 0;
    for (unsigned s = 0; s < SENDERS; s++) {
        for (unsigned i = 0; i < LETTERS; i++) {
            letter_init(&post[s][i], i);
            post[s][i].message.deliver = on_arrival;
        }
        senders[s] = (struct sender){ .inbox = loop_inbox(loop), .letters = post[s] };
    }
    for (unsigned s = 0; s < SENDERS; s++)
        CHECK(pthread_create(&senders[s].thread, NULL, send_all, &senders[s]) == 0);
}

static void join_senders(void)
{
    for (unsigned s = 0; s < SENDERS; s++)
        pthread_join(senders[s].thread, NULL);
}

TEST(every_letter_of_many_senders_arrives_once_and_each_senders_order_is_kept)
{
    open_loop();
    start_senders(deliver_counted);
    loop_run(loop);
    join_senders();
    for (unsigned s = 0; s < SENDERS; s++)
        for (unsigned i = 0; i < LETTERS; i++)
            CHECK_INT(post[s][i].delivered, 1);
    close_loop();
}

static void deliver_until_half(struct message *message)
{
    container_of(message, struct letter, message)->delivered++;
    if (++arrived == LETTERS / 2) {
        inbox_close(loop_inbox(loop));
        loop_break(loop);
    }
}

TEST(a_letter_sent_while_the_inbox_closes_is_delivered_or_dropped_never_both)
{
    open_loop();
    start_senders(deliver_until_half);
    loop_run(loop);
    join_senders();
    for (unsigned s = 0; s < SENDERS; s++)
        for (unsigned i = 0; i < LETTERS; i++)
            CHECK_INT(post[s][i].delivered + post[s][i].dropped, 1);
    CHECK_INT(arrived, LETTERS / 2);
    close_loop();
}

int main(void)
{
    return check_run();
}
