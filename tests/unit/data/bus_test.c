#include "data/bus.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "support/check.h"

static struct bus      *bus;
static struct loop     *loop;
static struct bus_port *port;

static void open_all(void)
{
    struct err err;

    CHECK_INT(loop_open(&loop, &err), 0);
    CHECK_INT(bus_open(&bus, &err), 0);
    CHECK_INT(bus_port_open(&port, bus, loop, &err), 0);
}

static void close_all(void)
{
    bus_port_close(port);
    inbox_close(loop_inbox(loop));
    bus_close(bus);
    loop_close(loop);
}

struct seen {
    struct bus_sub  sub;
    char            text[256];
    unsigned        count, lost;
    struct bus_sub *ends; /* which one on_message() ends */
};

static void on_message(struct bus_sub *sub, struct bus_message *message)
{
    struct seen *seen = container_of(sub, struct seen, sub);
    size_t       used = strlen(seen->text);

    seen->count++;
    snprintf(seen->text + used, sizeof(seen->text) - used, "%.*s=%.*s;",
             STR_ARG(bus_message_topic(message)), STR_ARG(bus_message_bytes(message)));
    if (seen->ends)
        bus_unsubscribe(seen->ends);
}

static void on_lost(struct bus_sub *sub, unsigned count)
{
    container_of(sub, struct seen, sub)->lost += count;
}

static void subscribe(struct seen *seen, const char *topic)
{
    struct err err;

    *seen = (struct seen){ .sub = { .on_message = on_message, .on_lost = on_lost } };
    CHECK_INT(bus_subscribe(port, &seen->sub, str_of(topic), &err), 0);
}

static void publish(const char *topic, const char *text)
{
    struct err err;

    CHECK_INT(bus_publish(bus, str_of(topic), str_of(text), &err), 0);
}

struct mark {
    struct message message;
};

static void stop(struct message *message)
{
    loop_break(loop);
}

/* Until all that was published is handed out, if a turn is enough for it. */
static void run(void)
{
    struct mark mark = { { NULL, stop, stop } };

    inbox_post(loop_inbox(loop), &mark.message);
    loop_run(loop);
}

TEST(a_message_reaches_whoever_has_subscribed_to_its_topic)
{
    struct seen exact, pattern, other;

    open_all();
    subscribe(&exact, "room.1");
    subscribe(&pattern, "room.*");
    subscribe(&other, "hall");
    publish("room.1", "a");
    publish("room.2", "b");
    CHECK_INT(exact.count, 0); /* from the loop's turn alone */
    run();
    CHECK_STR(exact.text, "room.1=a;");
    CHECK_STR(pattern.text, "room.1=a;room.2=b;");
    CHECK_INT(other.count, 0);
    bus_unsubscribe(&exact.sub);
    bus_unsubscribe(&exact.sub);
    bus_unsubscribe(&other.sub);
    publish("room.1", "c");
    run();
    CHECK_INT(exact.count, 1);
    CHECK_INT(pattern.count, 3);
    bus_unsubscribe(&pattern.sub);
    close_all();
}

/* Who else has something to do in the loop has its turn between two messages of a storm. */
TEST(a_turn_hands_out_so_much_and_the_next_goes_on_in_order)
{
    enum { MESSAGES = 5 };
    struct seen *crowd  = calloc(BUS_HANDED_MAX, sizeof(*crowd));
    char         text[] = "0";

    open_all();
    for (unsigned i = 0; i < BUS_HANDED_MAX; i++)
        subscribe(&crowd[i], "t");
    for (unsigned i = 0; i < MESSAGES; i++, text[0]++)
        publish("t", text);
    run();
    CHECK_INT(crowd[0].count, 1);
    while (crowd[BUS_HANDED_MAX - 1].count < MESSAGES)
        run();
    CHECK_STR(crowd[0].text, "t=0;t=1;t=2;t=3;t=4;");
    CHECK_STR(crowd[BUS_HANDED_MAX - 1].text, "t=0;t=1;t=2;t=3;t=4;");
    publish("t", "5");
    publish("t", "6");
    run(); /* one is held, and goes with the port */
    for (unsigned i = 0; i < BUS_HANDED_MAX; i++)
        bus_unsubscribe(&crowd[i].sub);
    close_all();
    free(crowd);
}

TEST(what_was_published_before_the_subscription_does_not_come)
{
    struct seen first, second;

    open_all();
    subscribe(&first, "t");
    publish("t", "1");
    subscribe(&second, "t");
    publish("t", "2");
    run();
    CHECK_STR(first.text, "t=1;t=2;");
    CHECK_STR(second.text, "t=2;");
    bus_unsubscribe(&first.sub);
    bus_unsubscribe(&second.sub);
    close_all();
}

TEST(a_star_stands_for_any_bytes)
{
    CHECK(bus_matches(STR("room.*"), STR("room.")));
    CHECK(bus_matches(STR("room.*"), STR("room.a.b")));
    CHECK(!bus_matches(STR("room.*"), STR("room")));
    CHECK(bus_matches(STR("*"), STR("anything")));
    CHECK(bus_matches(STR("*.x.*"), STR("a.x.x.b")));
    CHECK(bus_matches(STR("a*b*c"), STR("a--b-b--c")));
    CHECK(!bus_matches(STR("a*b*c"), STR("a--b-b--d")));
    CHECK(!bus_matches(STR("room.1"), STR("room.12")));
    CHECK(bus_matches(STR("**"), STR("")));
}

TEST(a_pattern_that_looks_for_long_is_still_fast)
{
    char pattern[BUS_TOPIC_BYTES_MAX], topic[BUS_TOPIC_BYTES_MAX];

    for (unsigned i = 0; i < sizeof(pattern); i++)
        pattern[i] = i % 2 ? '*' : 'a';
    memset(topic, 'a', sizeof(topic));
    topic[sizeof(topic) - 1]     = 'b';
    pattern[sizeof(pattern) - 1] = 'c';
    CHECK(!bus_matches(str_make(pattern, sizeof(pattern)), str_make(topic, sizeof(topic))));
}

TEST(a_subscriber_may_end_itself_and_others_amid_a_message)
{
    struct seen a, b, c;

    open_all();
    subscribe(&a, "t");
    subscribe(&b, "t");
    subscribe(&c, "*");
    a.ends = &a.sub;
    b.ends = &c.sub;
    publish("t", "1");
    run();
    CHECK_INT(a.count, 1);
    CHECK_INT(b.count, 1);
    CHECK_INT(c.count, 0);
    publish("t", "2");
    run();
    CHECK_INT(a.count, 1);
    CHECK_INT(b.count, 2);
    bus_unsubscribe(&b.sub);
    close_all();
}

TEST(topics_are_forgotten_with_their_last_subscriber)
{
    struct bus_stats stats;
    struct seen      seen;
    char             topic[32];

    open_all();
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(topic, sizeof(topic), i % 2 ? "t.%u" : "t.%u.*", i);
        subscribe(&seen, topic);
        bus_unsubscribe(&seen.sub);
    }
    bus_stats(bus, &stats);
    CHECK_INT(stats.topics, 0);
    close_all();
}

TEST(what_a_worker_does_not_take_is_bounded_and_its_subscribers_are_told)
{
    struct seen seen;

    open_all();
    subscribe(&seen, "t");
    for (unsigned i = 0; i < BUS_WAITING_MAX + 7; i++)
        publish("t", "");
    seen.text[0] = '\0';
    while (seen.count < BUS_WAITING_MAX)
        run();
    CHECK_INT(seen.count, BUS_WAITING_MAX);
    CHECK_INT(seen.lost, 7);
    publish("t", "");
    run();
    CHECK_INT(seen.count, BUS_WAITING_MAX + 1);
    bus_unsubscribe(&seen.sub);
    close_all();
}

TEST(messages_and_topics_that_are_too_long_are_refused)
{
    char      *large = calloc(1, BUS_BYTES_MAX + 1);
    struct err err;

    open_all();
    CHECK_INT(bus_publish(bus, STR("t"), str_make(large, BUS_BYTES_MAX + 1), &err), ERR_TOO_LARGE);
    CHECK_INT(bus_publish(bus, str_make(large, BUS_TOPIC_BYTES_MAX + 1), STR(""), &err),
              ERR_TOO_LARGE);
    free(large);
    close_all();
}

TEST(what_is_on_its_way_when_the_worker_closes_is_given_back)
{
    struct seen seen;

    open_all();
    subscribe(&seen, "t");
    publish("t", "never read");
    bus_unsubscribe(&seen.sub);
    close_all(); /* the sanitizer says whether something was left */
}

/* --- threads -------------------------------------------------------------------------------------- */

enum { THREADS = 4, MESSAGES = 2000 };

static atomic_uint finished;
static unsigned    out_of_order;

struct end {
    struct bus_sub sub;
    unsigned       next[THREADS];
    unsigned       count;
    struct loop   *loop;
};

static void on_numbered(struct bus_sub *sub, struct bus_message *message)
{
    struct end *end = container_of(sub, struct end, sub);
    unsigned    from, number;

    memcpy(&from, bus_message_bytes(message).at, sizeof(from));
    memcpy(&number, bus_message_bytes(message).at + sizeof(from), sizeof(number));
    if (end->next[from]++ != number)
        out_of_order++;
    if (++end->count == THREADS * MESSAGES)
        loop_break(end->loop);
}

static void send_many(void *arg)
{
    struct err err;

    for (unsigned i = 0; i < MESSAGES; i++) {
        unsigned content[2] = { (unsigned)(uintptr_t)arg, i };

        bus_publish(bus, STR("t.x"), str_make((char *)content, sizeof(content)), &err);
    }
    atomic_fetch_add(&finished, 1);
}

static void listen_and_end(void *arg)
{
    struct end *end = arg;

    loop_run(end->loop);
    bus_unsubscribe(&end->sub);
}

TEST(every_worker_gets_each_publishers_messages_in_order)
{
    struct thread    senders[THREADS], listeners[2];
    struct end       ends[2]  = { 0 };
    struct bus_port *ports[2] = { 0 };
    struct err       err;

    open_all();
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(loop_open(&ends[i].loop, &err), 0);
        CHECK_INT(bus_port_open(&ports[i], bus, ends[i].loop, &err), 0);
        ends[i].sub = (struct bus_sub){ .on_message = on_numbered, .on_lost = on_lost };
        CHECK_INT(bus_subscribe(ports[i], &ends[i].sub, i ? STR("t.*") : STR("t.x"), &err), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(thread_start(&listeners[i], "listen", 0, listen_and_end, &ends[i], &err), 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(thread_start(&senders[i], "send", 0, send_many, (void *)(uintptr_t)i, &err), 0);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&senders[i]);
    for (unsigned i = 0; i < 2; i++) {
        thread_join(&listeners[i]);
        bus_port_close(ports[i]);
        inbox_close(loop_inbox(ends[i].loop));
    }
    CHECK_INT(out_of_order, 0);
    close_all();
    for (unsigned i = 0; i < 2; i++)
        loop_close(ends[i].loop);
}

int main(void)
{
    return check_run();
}
