/* needs: redis
 * Two processes are two buses here, two workers of one are two clients with the same hearing. */
#include "data/redis_bus.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/list.h"
#include "data/bus.h"
#include "data/redis.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dns.h"
#include "support/check.h"

enum { PATIENCE_MS = 20000, STEP_MS = 5 };

struct process {
    struct bus           *bus;
    struct bus_port      *port;
    struct redis_hearing *hearing;
    struct bus_sub        sub;
    unsigned              heard;
    char                  last[64];
};

static struct loop   *loop;
static struct dns    *dns;
static struct redis  *redis;
static struct timer   step;
static struct process one, two;

static void on_step(struct timer *timer)
{
    loop_break(loop);
}

static void run_for(uint64_t ms)
{
    timer_start(&step, loop, ms);
    loop_run(loop);
    timer_stop(&step, loop);
}

static void on_message(struct bus_sub *sub, struct bus_message *message)
{
    struct process *process = container_of(sub, struct process, sub);

    process->heard++;
    snprintf(process->last, sizeof(process->last), "%.*s=%.*s", STR_ARG(bus_message_topic(message)),
             STR_ARG(bus_message_bytes(message)));
}

static void on_lost(struct bus_sub *sub, unsigned count)
{
}

static void open_process(struct process *process)
{
    struct err err;

    memset(process, 0, sizeof(*process));
    process->sub.on_message = on_message;
    process->sub.on_lost    = on_lost;
    CHECK_INT(bus_open(&process->bus, &err), 0);
    CHECK_INT(bus_port_open(&process->port, process->bus, loop, &err), 0);
    CHECK_INT(bus_subscribe(process->port, &process->sub, STR("room.*"), &err), 0);
    CHECK_INT(redis_hearing_open(&process->hearing, process->bus, &err), 0);
}

static void close_process(struct process *process)
{
    bus_unsubscribe(&process->sub);
    bus_port_close(process->port);
    redis_hearing_close(process->hearing);
}

static void open_all(void)
{
    struct err err;

    timer_init(&step, on_step);
    CHECK_INT(loop_open(&loop, &err), 0);
    CHECK_INT(dns_open(&dns, loop, NULL, &err), 0);
    CHECK_INT(redis_open(&redis, loop, dns, NULL, &err), 0);
    open_process(&one);
    open_process(&two);
}

static void close_all(void)
{
    redis_close(redis);
    close_process(&one);
    close_process(&two);
    dns_close(dns);
    loop_close(loop);
    bus_close(one.bus);
    bus_close(two.bus);
}

/* As a worker of PROCESS; WORKER makes it a client of its own. */
static struct redis_bus *join(const struct process *process, unsigned worker)
{
    struct redis_options options;
    struct redis_client *client;
    struct redis_bus    *bus;
    struct err           err;

    memset(&options, 0, sizeof(options));
    CHECK_INT(redis_url_parse(&options.target, str_of(getenv("TEST_REDIS_URL")), &err), 0);
    options.timeout_ms = options.connect_ms = 10000;
    options.queue                           = 1000 + worker;
    options.pool                            = 1;
    client                                  = redis_client_get(redis, &options);
    bus = redis_bus_get(client, process->hearing, STR("a*[b]?\\:"));
    CHECK(bus);
    redis_client_let_go(client); /* the bus holds it */
    return bus;
}

static bool is_up(const struct redis_bus *bus)
{
    struct redis_bus_stats stats;

    redis_bus_stats(bus, &stats);
    return stats.is_up;
}

static void wait_until_up(const struct redis_bus *bus)
{
    for (unsigned ms = 0; ms < PATIENCE_MS && !is_up(bus); ms += STEP_MS)
        run_for(STEP_MS);
    CHECK(is_up(bus));
}

static void wait_until_heard(const struct process *process, unsigned count)
{
    for (unsigned ms = 0; ms < PATIENCE_MS && process->heard < count; ms += STEP_MS)
        run_for(STEP_MS);
    CHECK_INT(process->heard, count);
}

TEST(what_one_process_publishes_the_other_hears_once_and_itself_never)
{
    struct redis_bus *a, *b;

    open_all();
    a = join(&one, 1);
    b = join(&two, 2);
    wait_until_up(a);
    wait_until_up(b);
    redis_bus_publish(a, STR("room.1"), STR("first"));
    redis_bus_publish(a, STR("other"), STR("nobody"));
    redis_bus_publish(a, STR("room.2"), STR("second"));
    wait_until_heard(&two, 2);
    CHECK_STR(two.last, "room.2=second");
    redis_bus_publish(b, STR("room.3"), STR("back"));
    wait_until_heard(&one, 1);
    CHECK_STR(one.last, "room.3=back");
    run_for(50);
    CHECK_INT(one.heard, 1);
    CHECK_INT(two.heard, 2);
    redis_bus_let_go(a);
    redis_bus_let_go(b);
    close_all();
}

TEST(one_worker_hears_for_all_and_another_takes_over)
{
    struct redis_bus      *first, *second, *far;
    struct redis_bus_stats stats;

    open_all();
    far   = join(&two, 9);
    first = join(&one, 1);
    wait_until_up(far);
    wait_until_up(first);
    second = join(&one, 2);
    run_for(2 * REDIS_BUS_BEAT_MS);
    redis_bus_stats(second, &stats);
    CHECK(!stats.hears);
    redis_bus_publish(far, STR("room.1"), STR("x"));
    wait_until_heard(&one, 1);
    redis_bus_let_go(first);
    wait_until_up(second);
    redis_bus_publish(far, STR("room.1"), STR("y"));
    wait_until_heard(&one, 2);
    run_for(50);
    CHECK_INT(one.heard, 2);
    redis_bus_let_go(second);
    redis_bus_let_go(far);
    close_all();
}

TEST(a_client_has_one_bus_for_all_who_ask)
{
    struct redis_bus *a, *b;

    open_all();
    a = join(&one, 1);
    b = join(&one, 1);
    CHECK(a == b);
    redis_bus_let_go(a);
    wait_until_up(b);
    redis_bus_let_go(b);
    close_all();
}

TEST(messages_that_cannot_be_sent_are_counted)
{
    struct redis_options   options;
    struct redis_client   *client;
    struct redis_bus      *bus;
    struct redis_bus_stats stats;
    struct err             err;

    open_all();
    memset(&options, 0, sizeof(options));
    CHECK_INT(redis_url_parse(&options.target, STR("redis://127.0.0.1:1"), &err), 0);
    options.timeout_ms = options.connect_ms = 1000;
    options.queue = options.pool = 10;
    client                       = redis_client_get(redis, &options);
    bus                          = redis_bus_get(client, one.hearing, STR(""));
    redis_client_let_go(client);
    redis_bus_stats(bus, &stats);
    for (unsigned ms = 0; ms < PATIENCE_MS && stats.unsent == 0; ms += STEP_MS) {
        redis_bus_publish(bus, STR("room.1"), STR("lost"));
        run_for(STEP_MS);
        redis_bus_stats(bus, &stats);
    }
    CHECK(stats.unsent > 0);
    redis_bus_let_go(bus);
    close_all();
}

int main(void)
{
    return check_run();
}
