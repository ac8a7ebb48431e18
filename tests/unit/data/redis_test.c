/* needs: redis
 * Calls on a real server; what it does to connections is asked for by its own commands. */
#include "data/redis.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "data/redis_call.h"
#include "data/redis_command.h"
#include "data/redis_reply.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dns.h"
#include "support/check.h"

enum { PATIENCE_MS = 20000, ANSWERS_MAX = 64 };

struct ask {
    struct redis_call call;
    bool              done, dropped;
};

static struct loop         *loop;
static struct dns          *dns;
static struct redis        *redis;
static struct redis_options options;
static struct redis_client *client;
static struct ask           asks[ANSWERS_MAX];
static unsigned             wanted;
static struct timer         patience;

static void on_done(struct redis_call *call)
{
    struct ask *ask = container_of(call, struct ask, call);

    CHECK(!ask->done && !ask->dropped);
    ask->done = true;
    if (wanted && --wanted == 0)
        loop_break(loop);
}

static void on_drop(struct redis_call *call)
{
    struct ask *ask = container_of(call, struct ask, call);

    ask->dropped = true;
    redis_call_fini(call);
    if (wanted && --wanted == 0)
        loop_break(loop);
}

static void on_impatience(struct timer *timer)
{
    loop_break(loop);
}

/* Until COUNT more calls have come to an end. */
static void run_until(unsigned count)
{
    wanted = count;
    timer_start(&patience, loop, PATIENCE_MS);
    loop_run(loop);
    CHECK_INT(wanted, 0);
    timer_stop(&patience, loop);
}

static void open_with(uint64_t timeout_ms, unsigned queue, unsigned pool)
{
    struct err err;

    timer_init(&patience, on_impatience);
    CHECK_INT(loop_open(&loop, &err), 0);
    CHECK_INT(dns_open(&dns, loop, NULL, &err), 0);
    CHECK_INT(redis_open(&redis, loop, dns, NULL, &err), 0);
    memset(&options, 0, sizeof(options));
    CHECK_INT(redis_url_parse(&options.target, str_of(getenv("TEST_REDIS_URL")), &err), 0);
    options.timeout_ms = timeout_ms;
    options.connect_ms = 5000;
    options.queue      = queue;
    options.pool       = pool;
    client             = redis_client_get(redis, &options);
    memset(asks, 0, sizeof(asks));
}

static void close_all(void)
{
    redis_client_let_go(client);
    redis_close(redis);
    dns_close(dns);
    loop_close(loop);
    for (unsigned i = 0; i < ANSWERS_MAX; i++)
        if (asks[i].done)
            redis_call_fini(&asks[i].call);
}

/* WORDS are parted by blanks. */
static void make(struct ask *ask, const char *words)
{
    struct str rest  = str_of(words), word;
    size_t     count = 1;

    for (const char *at = words; *at; at++)
        count += *at == ' ';
    redis_call_init(&ask->call);
    ask->call.done = on_done;
    ask->call.drop = on_drop;
    redis_add_head(&ask->call.request, count);
    while (str_next(&rest, ' ', &word))
        redis_add_word(&ask->call.request, word);
}

static struct ask *start(unsigned slot, const char *words)
{
    make(&asks[slot], words);
    CHECK_INT(redis_start(client, &asks[slot].call), 0);
    return &asks[slot];
}

static struct ask *start_alone(unsigned slot, const char *words)
{
    make(&asks[slot], words);
    asks[slot].call.alone = asks[slot].call.waits = true;
    CHECK_INT(redis_start(client, &asks[slot].call), 0);
    return &asks[slot];
}

static struct reply_node answer(const struct ask *ask)
{
    struct str        rest = buf_str(&ask->call.reply);
    struct reply_node node;

    CHECK(ask->done);
    CHECK_STR(ask->call.fault.code ? ask->call.fault.text : "", "");
    CHECK(reply_next(&rest, &node));
    return node;
}

static void check_text(const struct ask *ask, const char *want)
{
    struct reply_node node = answer(ask);

    CHECK_MEM(node.text.at, node.text.len, want, strlen(want));
}

static void check_fault(const struct ask *ask, const char *code)
{
    CHECK(ask->done);
    CHECK_STR(ask->call.fault.code ? ask->call.fault.code : "none", code);
}

/* --- the pipeline ---------------------------------------------------------------------------------- */

TEST(each_call_gets_its_own_reply_in_order)
{
    open_with(10000, 1000, 2);
    for (unsigned i = 0; i < 32; i++) {
        char words[32];

        snprintf(words, sizeof(words), "ECHO %u", i);
        start(i, words);
    }
    run_until(32);
    for (unsigned i = 0; i < 32; i++) {
        char want[16];

        snprintf(want, sizeof(want), "%u", i);
        check_text(&asks[i], want);
    }
    close_all();
}

TEST(a_cancelled_call_s_reply_is_read_and_dropped)
{
    open_with(10000, 1000, 2);
    start(0, "ECHO first");
    start(1, "ECHO gone");
    start(2, "ECHO third");
    redis_cancel(client, &asks[1].call);
    CHECK(!asks[1].dropped);
    run_until(3);
    check_text(&asks[0], "first");
    check_text(&asks[2], "third");
    CHECK(asks[1].dropped && !asks[1].done);
    close_all();
}

TEST(several_commands_of_one_call_stay_together)
{
    struct str        rest;
    struct reply_node node;

    open_with(10000, 1000, 2);
    make(&asks[0], "SET together 1");
    redis_add_head(&asks[0].call.request, 2);
    redis_add_word(&asks[0].call.request, STR("INCR"));
    redis_add_word(&asks[0].call.request, STR("together"));
    asks[0].call.replies = 2;
    CHECK_INT(redis_start(client, &asks[0].call), 0);
    run_until(1);
    rest = buf_str(&asks[0].call.reply);
    CHECK(reply_next(&rest, &node) && node.kind == REPLY_STATUS);
    CHECK(reply_next(&rest, &node) && node.kind == REPLY_INTEGER);
    CHECK_INT(node.number, 2);
    CHECK_INT(rest.len, 0);
    close_all();
}

TEST(a_full_queue_is_busy)
{
    open_with(10000, 2, 2);
    start(0, "PING");
    start(1, "PING");
    make(&asks[2], "PING");
    CHECK_INT(redis_start(client, &asks[2].call), -1);
    CHECK_STR(asks[2].call.fault.code, "busy");
    redis_call_fini(&asks[2].call);
    run_until(2);
    close_all();
}

TEST(the_same_identity_is_the_same_client)
{
    struct redis_client *other;

    open_with(10000, 10, 2);
    other = redis_client_get(redis, &options);
    CHECK(other == client);
    redis_client_let_go(other);
    options.target.database = 1;
    other                   = redis_client_get(redis, &options);
    CHECK(other && other != client);
    redis_client_let_go(other);
    close_all();
}

TEST(calls_under_way_end_when_their_client_is_closed)
{
    open_with(10000, 10, 2);
    start(0, "PING");
    redis_client_let_go(client);
    run_until(1);
    check_fault(&asks[0], "closed");
    client = redis_client_get(redis, &options);
    close_all();
}

/* --- servers that hang or go ------------------------------------------------------------------------ */

TEST(who_waits_too_long_times_out_and_those_behind_need_not_wait)
{
    open_with(500, 1000, 2);
    start(3, "CLIENT PAUSE 3000 ALL");
    run_until(1);
    check_text(&asks[3], "OK");
    start(0, "PING");
    start(1, "PING");
    run_until(2);
    check_fault(&asks[0], "timeout");
    check_fault(&asks[1], "unavailable");
    make(&asks[2], "PING");
    CHECK_INT(redis_start(client, &asks[2].call), -1);
    CHECK_STR(asks[2].call.fault.code, "unavailable");
    redis_call_fini(&asks[2].call);
    close_all();
}

static bool answers_again(unsigned slot)
{
    make(&asks[slot], "PING");
    if (redis_start(client, &asks[slot].call) == 0) {
        run_until(1);
        if (!fault_is_set(&asks[slot].call.fault))
            return true;
    }
    redis_call_fini(&asks[slot].call);
    asks[slot].done = false;
    return false;
}

static void on_pause(struct timer *timer)
{
    loop_break(loop);
}

static void pause_for(uint64_t ms)
{
    struct timer timer;

    timer_init(&timer, on_pause);
    timer_start(&timer, loop, ms);
    loop_run(loop);
}

TEST(a_connection_that_the_server_ends_is_made_anew)
{
    struct redis_stats stats;
    bool               back = false;

    open_with(5000, 1000, 2);
    start(0, "PING");
    run_until(1);
    start(1, "CLIENT KILL TYPE normal SKIPME no");
    run_until(1);
    for (unsigned tries = 0; tries < 1000 && !back; tries++) {
        pause_for(5);
        back = answers_again(2);
    }
    CHECK(back);
    redis_stats(redis, &stats);
    CHECK(stats.lost >= 1);
    CHECK_INT(stats.pending, 0);
    close_all();
}

TEST(where_nobody_listens_calls_fail_at_once)
{
    struct err err;

    open_with(5000, 1000, 2);
    redis_client_let_go(client);
    CHECK_INT(redis_url_parse(&options.target, STR("redis://127.0.0.1:1"), &err), 0);
    client = redis_client_get(redis, &options);
    start(0, "PING");
    run_until(1);
    check_fault(&asks[0], "unavailable");
    make(&asks[1], "PING");
    CHECK_INT(redis_start(client, &asks[1].call), -1);
    CHECK_STR(asks[1].call.fault.code, "unavailable");
    redis_call_fini(&asks[1].call);
    close_all();
}

TEST(a_wrong_password_is_told)
{
    open_with(5000, 1000, 2);
    snprintf(options.target.user, sizeof(options.target.user), "nobody");
    snprintf(options.target.password, sizeof(options.target.password), "wrong");
    redis_client_let_go(client);
    client = redis_client_get(redis, &options);
    start(0, "PING");
    run_until(1);
    check_fault(&asks[0], "unavailable");
    CHECK(strstr(asks[0].call.fault.text, "WRONGPASS"));
    close_all();
}

/* --- connections of one's own ----------------------------------------------------------------------- */

TEST(what_waits_at_the_server_holds_nobody_up)
{
    open_with(10000, 1000, 2);
    start_alone(0, "BLPOP seats-a 0");
    start(1, "ECHO quick");
    run_until(1);
    check_text(&asks[1], "quick");
    CHECK(!asks[0].done);
    start(2, "RPUSH seats-a x");
    run_until(2);
    CHECK_INT(answer(&asks[0]).number, 2);
    close_all();
}

TEST(who_waits_for_a_connection_gets_the_next_or_is_busy)
{
    open_with(1000, 1000, 1);
    start_alone(0, "BLPOP seats-b 0");
    start_alone(1, "BLPOP seats-b 0");
    run_until(1);
    check_fault(&asks[1], "busy");
    start_alone(2, "BLPOP seats-b 0");
    start(3, "RPUSH seats-b x y");
    run_until(3);
    CHECK_INT(answer(&asks[0]).number, 2);
    CHECK_INT(answer(&asks[2]).number, 2);
    close_all();
}

TEST(a_cancelled_wait_gives_its_place_up)
{
    open_with(10000, 1000, 1);
    start_alone(0, "BLPOP seats-c 0");
    start_alone(1, "BLPOP seats-c 0");
    start_alone(2, "BLPOP seats-d 0");
    redis_cancel(client, &asks[1].call);
    CHECK(asks[1].dropped);
    redis_cancel(client, &asks[0].call);
    CHECK(asks[0].dropped);
    start(3, "RPUSH seats-d x");
    run_until(2);
    CHECK_INT(answer(&asks[2]).number, 2);
    close_all();
}

TEST(a_connection_can_be_kept_between_calls)
{
    struct redis_seat *seat;
    struct redis_stats stats;

    open_with(10000, 1000, 1);
    make(&asks[0], "WATCH kept");
    asks[0].call.alone = asks[0].call.keeps = true;
    CHECK_INT(redis_start(client, &asks[0].call), 0);
    run_until(1);
    seat = asks[0].call.seat;
    CHECK(seat);
    make(&asks[1], "UNWATCH");
    asks[1].call.alone = true;
    asks[1].call.seat  = seat;
    CHECK_INT(redis_start(client, &asks[1].call), 0);
    run_until(1);
    CHECK(!asks[1].call.seat);
    make(&asks[2], "WATCH kept");
    asks[2].call.alone = asks[2].call.keeps = true;
    CHECK_INT(redis_start(client, &asks[2].call), 0);
    run_until(1);
    redis_give_up(client, asks[2].call.seat);
    redis_stats(redis, &stats);
    CHECK_INT(stats.connections, 0);
    close_all();
}

int main(void)
{
    return check_run();
}
