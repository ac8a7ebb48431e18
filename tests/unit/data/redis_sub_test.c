/* needs: redis */
#include "data/redis_sub.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/list.h"
#include "data/redis.h"
#include "data/redis_call.h"
#include "data/redis_command.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dns.h"
#include "support/check.h"

enum { PATIENCE_MS = 20000, STEP_MS = 5 };

static struct loop         *loop;
static struct dns          *dns;
static struct redis        *redis;
static struct redis_client *client;
static struct timer         patience;

static void on_tick(struct timer *timer)
{
    loop_break(loop);
}

static void run_for(uint64_t ms)
{
    timer_start(&patience, loop, ms);
    loop_run(loop);
    timer_stop(&patience, loop);
}

static void open_all(void)
{
    struct redis_options options;
    struct err           err;

    timer_init(&patience, on_tick);
    CHECK_INT(loop_open(&loop, &err), 0);
    CHECK_INT(dns_open(&dns, loop, NULL, &err), 0);
    CHECK_INT(redis_open(&redis, loop, dns, NULL, &err), 0);
    memset(&options, 0, sizeof(options));
    CHECK_INT(redis_url_parse(&options.target, str_of(getenv("TEST_REDIS_URL")), &err), 0);
    options.timeout_ms = options.connect_ms = 10000;
    options.queue = options.pool = 100;
    client                       = redis_client_get(redis, &options);
}

static void close_all(void)
{
    redis_client_let_go(client);
    redis_close(redis);
    dns_close(dns);
    loop_close(loop);
}

/* --- commands that nobody waits for ------------------------------------------------------------------- */

static void drop(struct redis_call *call)
{
    redis_call_fini(call);
    free(call);
}

static void say(const char *const *words, size_t count)
{
    struct redis_call *call = malloc(sizeof(*call));

    redis_call_init(call);
    call->done = call->drop = drop;
    redis_add_head(&call->request, count);
    for (size_t i = 0; i < count; i++)
        redis_add_word(&call->request, str_of(words[i]));
    if (redis_start(client, call) != 0)
        drop(call);
}

static void publish(const char *channel, const char *text)
{
    const char *words[] = { "PUBLISH", channel, text };

    say(words, 3);
}

/* --- what is heard -------------------------------------------------------------------------------------- */

static unsigned events;

static void on_event(struct redis_sub *sub, void *arg)
{
    events++;
    loop_break(loop);
}

static void wait_until_up(struct redis_sub *sub)
{
    for (unsigned ms = 0; ms < PATIENCE_MS && !redis_sub_is_up(sub); ms += STEP_MS)
        run_for(STEP_MS);
    CHECK(redis_sub_is_up(sub));
}

static struct redis_message hear(struct redis_sub *sub)
{
    struct redis_message message;

    for (unsigned ms = 0; ms < PATIENCE_MS && !redis_sub_first(sub, &message); ms += STEP_MS)
        run_for(STEP_MS);
    CHECK(redis_sub_first(sub, &message));
    return message;
}

static struct redis_sub *subscribe(bool patterns, const char *word)
{
    struct str        words[] = { str_of(word) };
    struct redis_sub *sub     = redis_sub_open(client, patterns, words, 1, on_event, NULL);

    CHECK(sub);
    wait_until_up(sub);
    CHECK(redis_sub_is_confirmed(sub));
    return sub;
}

TEST(messages_come_with_their_channel_in_order)
{
    struct redis_sub    *sub;
    struct redis_message message;

    open_all();
    sub = subscribe(false, "news");
    publish("news", "one");
    publish("other", "none");
    publish("news", "two");
    message = hear(sub);
    CHECK_MEM(message.text.at, message.text.len, "one", 3);
    CHECK_MEM(message.channel.at, message.channel.len, "news", 4);
    CHECK_INT(message.pattern.len, 0);
    redis_sub_next(sub);
    message = hear(sub);
    CHECK_MEM(message.text.at, message.text.len, "two", 3);
    redis_sub_next(sub);
    CHECK(!redis_sub_first(sub, &message));
    redis_sub_close(sub);
    close_all();
}

TEST(patterns_tell_what_they_matched)
{
    struct redis_sub    *sub;
    struct redis_message message;

    open_all();
    sub = subscribe(true, "room.*");
    publish("room.7", "hello");
    message = hear(sub);
    CHECK_MEM(message.text.at, message.text.len, "hello", 5);
    CHECK_MEM(message.channel.at, message.channel.len, "room.7", 6);
    CHECK_MEM(message.pattern.at, message.pattern.len, "room.*", 6);
    redis_sub_close(sub); /* with a message untaken */
    close_all();
}

TEST(a_lost_subscription_comes_back_by_itself)
{
    static const char *const KILL[] = { "CLIENT", "KILL", "TYPE", "pubsub" };

    struct redis_sub    *sub;
    struct redis_message message;

    open_all();
    sub = subscribe(false, "back");
    for (unsigned ms = 0; ms < PATIENCE_MS && redis_sub_is_up(sub); ms += STEP_MS) {
        say(KILL, 4);
        run_for(STEP_MS);
    }
    wait_until_up(sub);
    publish("back", "again");
    message = hear(sub);
    CHECK_MEM(message.text.at, message.text.len, "again", 5);
    redis_sub_close(sub);
    close_all();
}

TEST(a_slow_hearer_is_bounded_and_loses_nothing_by_it)
{
    static char          text[100 * 1024 + 1];
    struct redis_sub    *sub;
    struct redis_message message;
    unsigned             heard = 0;

    open_all();
    sub = subscribe(false, "flood");
    memset(text, 'x', sizeof(text) - 1);
    for (unsigned i = 0; i < 50; i++)
        publish("flood", text);
    run_for(200);
    while (heard < 50) {
        message = hear(sub);
        CHECK_INT(message.text.len, sizeof(text) - 1);
        redis_sub_next(sub);
        heard++;
    }
    CHECK_INT(heard, 50);
    redis_sub_close(sub);
    close_all();
}

int main(void)
{
    return check_run();
}
