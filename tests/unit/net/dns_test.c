#include "net/dns.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ev/loop.h"
#include "ev/timer.h"
#include "support/check.h"
#include "support/dns_server.h"

enum { PATIENCE_MS = 60000 };

struct bed {
    struct dns_server server;
    struct loop      *loop;
    struct dns       *dns;
    struct timer      patience;
    char              folder[64], hosts[96], resolv[96];
    unsigned          left; /* questions that the loop still runs for */
};

struct question {
    struct dns_query query;
    struct bed      *bed;
    unsigned         answers;
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void on_patience(struct timer *timer)
{
    fprintf(stderr, "no answer within the test's patience\n");
    abort();
}

/* Without `servers`, those of resolv.conf, which the test writes. */
static void open_with(struct bed *bed, const struct dns_options *options)
{
    struct dns_options own = *options;
    struct err         err;

    memset(bed, 0, sizeof(*bed));
    dns_server_start(&bed->server);
    snprintf(bed->folder, sizeof(bed->folder), "/tmp/srv-dns-XXXXXX");
    CHECK(mkdtemp(bed->folder) != NULL);
    snprintf(bed->hosts, sizeof(bed->hosts), "%s/hosts", bed->folder);
    snprintf(bed->resolv, sizeof(bed->resolv), "%s/resolv.conf", bed->folder);
    write_file(bed->hosts, "");
    write_file(bed->resolv, "search corp.test\noptions ndots:1\n");
    own.hosts_path  = bed->hosts;
    own.resolv_path = bed->resolv;
    own.servers     = options->servers ? options->servers : bed->server.address;
    CHECK_INT(loop_open(&bed->loop, &err), 0);
    CHECK_INT(dns_open(&bed->dns, bed->loop, &own, &err), 0);
    timer_init(&bed->patience, on_patience);
    timer_start(&bed->patience, bed->loop, PATIENCE_MS);
}

static void bed_open(struct bed *bed)
{
    open_with(bed, &(struct dns_options){ .timeout_ms = 5000 }); /* a question is asked once */
}

static void bed_close(struct bed *bed)
{
    dns_close(bed->dns);
    timer_stop(&bed->patience, bed->loop);
    loop_close(bed->loop);
    dns_server_stop(&bed->server);
    unlink(bed->hosts);
    unlink(bed->resolv);
    rmdir(bed->folder);
}

static void on_done(struct dns_query *query)
{
    struct question *q = container_of(query, struct question, query);

    q->answers++;
    if (--q->bed->left == 0)
        loop_break(q->bed->loop);
}

/* True: answered at once. */
static bool ask(struct bed *bed, struct question *q, const char *name)
{
    bool at_once;

    *q      = (struct question){ .query = { .done = on_done }, .bed = bed };
    at_once = dns_resolve(bed->dns, &q->query, str_of(name), 80);
    if (!at_once)
        bed->left++;
    return at_once;
}

static void wait_all(struct bed *bed)
{
    if (bed->left > 0)
        loop_run(bed->loop);
}

static void resolve(struct bed *bed, struct question *q, const char *name)
{
    if (ask(bed, q, name))
        return;
    wait_all(bed);
    CHECK_INT(q->answers, 1);
}

static const char *text_of(const struct question *q, unsigned i)
{
    static char text[ADDR_TEXT_BYTES];

    return addr_format(&q->query.addrs[i], text);
}

static bool has(const struct question *q, const char *text)
{
    for (unsigned i = 0; i < q->query.count; i++)
        if (strcmp(text_of(q, i), text) == 0)
            return true;
    return false;
}

static void pass_time(struct bed *bed, unsigned ms);

/* --- without a server -------------------------------------------------------------------------- */

TEST(literal_addresses_are_answered_at_once)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    CHECK(ask(&bed, &q, "192.0.2.77"));
    CHECK_STR(text_of(&q, 0), "192.0.2.77:80");
    CHECK(ask(&bed, &q, "[2001:db8::7]"));
    CHECK_STR(text_of(&q, 0), "[2001:db8::7]:80");
    CHECK(ask(&bed, &q, "::1"));
    CHECK_STR(text_of(&q, 0), "[::1]:80");
    CHECK_INT(atomic_load(&bed.server.asked), 0);
    bed_close(&bed);
}

TEST(localhost_and_names_below_it_need_neither_file_nor_server)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    CHECK(ask(&bed, &q, "LocalHost"));
    CHECK_INT(q.query.count, 2);
    CHECK(has(&q, "127.0.0.1:80") && has(&q, "[::1]:80"));
    CHECK(ask(&bed, &q, "app.localhost."));
    CHECK(has(&q, "127.0.0.1:80"));
    CHECK_INT(atomic_load(&bed.server.asked), 0);
    bed_close(&bed);
}

TEST(the_hosts_file_comes_first_whatever_the_case)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    write_file(bed.hosts, "# names\n10.0.0.1 Four.test alias # comment\n::5 four.test\nbroken x\n"
                          "10.0.0.2 four.test\n10.0.0.1 four.test\n");
    CHECK(ask(&bed, &q, "fOUR.test"));
    CHECK_INT(q.query.count, 3);
    CHECK_STR(text_of(&q, 0), "10.0.0.1:80");
    CHECK(has(&q, "[::5]:80") && has(&q, "10.0.0.2:80"));
    CHECK(ask(&bed, &q, "alias."));
    CHECK_INT(atomic_load(&bed.server.asked), 0);
    bed_close(&bed);
}

TEST(what_is_no_host_name_is_refused_without_asking)
{
    static const char *const names[] = { "",      ".",     "a..b",  ".a",     "a b",
                                         "1.2.3", "0x7f",  "a.b\\", "a/b",    "b\xc3\xbc",
                                         "a.1",   "a_b..", "[a]",   "[1.2]x", "a\nb" };
    char                     label[80], name[300];
    struct bed               bed;
    struct question          q;

    bed_open(&bed);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], "0x7f") == 0)
            continue;
        CHECK(ask(&bed, &q, names[i]));
        CHECK_INT(q.query.rc, ERR_INVALID);
        CHECK_INT(q.query.count, 0);
    }
    memset(label, 'a', 64);
    label[64] = '\0';
    CHECK(ask(&bed, &q, label));
    CHECK_INT(q.query.rc, ERR_INVALID);
    memset(name, 'a', 299);
    name[299] = '\0';
    CHECK(ask(&bed, &q, name));
    CHECK_INT(q.query.rc, ERR_INVALID);
    CHECK_INT(atomic_load(&bed.server.asked), 0);
    bed_close(&bed);
}

/* --- with one ---------------------------------------------------------------------------------- */

TEST(both_families_are_asked_for_and_come_in_turn)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "both.test");
    CHECK_INT(q.query.rc, 0);
    CHECK_INT(q.query.count, 2);
    CHECK(has(&q, "192.0.2.1:80") && has(&q, "[2001:db8::1]:80"));
    CHECK_INT(atomic_load(&bed.server.asked), 2);
    bed_close(&bed);
}

TEST(one_family_is_enough)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "four.test");
    CHECK_INT(q.query.count, 1);
    CHECK_STR(text_of(&q, 0), "192.0.2.4:80");
    resolve(&bed, &q, "six.test");
    CHECK_INT(q.query.count, 1);
    CHECK_STR(text_of(&q, 0), "[2001:db8::6]:80");
    bed_close(&bed);
}

TEST(an_answer_is_kept_and_shared_by_those_who_ask_meanwhile)
{
    struct bed      bed;
    struct question first, second, third;

    bed_open(&bed);
    CHECK(!ask(&bed, &first, "four.test"));
    CHECK(!ask(&bed, &second, "FOUR.test"));
    CHECK_INT(dns_pending(bed.dns), 2);
    wait_all(&bed);
    CHECK_INT(first.query.count, 1);
    CHECK_INT(second.query.count, 1);
    CHECK_INT(dns_pending(bed.dns), 0);
    CHECK(ask(&bed, &third, "four.test"));
    CHECK_INT(atomic_load(&bed.server.asked), 2);
    bed_close(&bed);
}

TEST(an_answer_is_kept_for_its_ttl)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "zero.test");
    CHECK(!ask(&bed, &q, "zero.test"));
    wait_all(&bed);
    resolve(&bed, &q, "brief.test");
    CHECK(ask(&bed, &q, "brief.test"));
    pass_time(&bed, 1100);
    CHECK(!ask(&bed, &q, "brief.test"));
    wait_all(&bed);
    CHECK_STR(text_of(&q, 0), "192.0.2.5:80");
    bed_close(&bed);
}

TEST(an_alias_is_followed)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "alias.test");
    CHECK_INT(q.query.rc, 0);
    CHECK_INT(q.query.count, 1);
    CHECK_STR(text_of(&q, 0), "192.0.2.4:80");
    bed_close(&bed);
}

TEST(a_name_that_does_not_exist_is_known_for_a_while)
{
    struct bed      bed;
    struct question q;
    unsigned        asked;

    bed_open(&bed);
    resolve(&bed, &q, "nothing.test.");
    CHECK_INT(q.query.rc, ERR_NOT_FOUND);
    CHECK_STR(q.query.err.text, "nothing.test.: no such name");
    asked = atomic_load(&bed.server.asked);
    CHECK(ask(&bed, &q, "nothing.test."));
    CHECK_INT(q.query.rc, ERR_NOT_FOUND);
    CHECK_INT(atomic_load(&bed.server.asked), asked);
    bed_close(&bed);
}

TEST(a_truncated_answer_comes_by_tcp_and_is_bounded)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "big.test");
    CHECK_INT(q.query.rc, 0);
    CHECK_INT(q.query.count, DNS_ADDRS_MAX);
    CHECK(atomic_load(&bed.server.asked_tcp) > 0);
    bed_close(&bed);
}

TEST(answers_with_another_id_or_name_are_ignored)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "wrongid.test");
    CHECK_INT(q.query.count, 1);
    CHECK_STR(text_of(&q, 0), "192.0.2.7:80");
    resolve(&bed, &q, "wrongname.test");
    CHECK_INT(q.query.count, 1);
    CHECK_STR(text_of(&q, 0), "192.0.2.8:80");
    bed_close(&bed);
}

TEST(search_domains_complete_a_short_name_unless_it_ends_in_a_dot)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    resolve(&bed, &q, "four");
    CHECK_INT(q.query.rc, 0);
    CHECK_STR(text_of(&q, 0), "192.0.2.4:80");
    resolve(&bed, &q, "four.");
    CHECK_INT(q.query.rc, ERR_NOT_FOUND);
    bed_close(&bed);
}

TEST(a_server_that_fails_is_an_error_and_not_a_missing_name)
{
    struct bed      bed;
    struct question q;

    open_with(&bed, &(struct dns_options){ .timeout_ms = 5000, .tries = 1 });
    resolve(&bed, &q, "fail.test.");
    CHECK_INT(q.query.rc, ERR_SYSTEM);
    bed_close(&bed);
}

TEST(a_silent_server_is_a_timeout_within_the_bound)
{
    struct bed      bed;
    struct question q;

    open_with(&bed, &(struct dns_options){ .timeout_ms = 50, .tries = 2 });
    resolve(&bed, &q, "silent.test.");
    CHECK_INT(q.query.rc, ERR_TIMEOUT);
    bed_close(&bed);
}

TEST(the_limit_of_a_lookup_ends_it_before_the_servers_time_is_up)
{
    struct bed      bed;
    struct question q;

    open_with(&bed, &(struct dns_options){ .timeout_ms = 300, .tries = 1, .limit_ms = 50 });
    resolve(&bed, &q, "silent.test.");
    CHECK_INT(q.query.rc, ERR_TIMEOUT);
    CHECK(!ask(&bed, &q, "silent.test.")); /* not kept: asked anew */
    wait_all(&bed);
    CHECK_INT(q.query.rc, ERR_TIMEOUT);
    pass_time(&bed, 400); /* the first of the two ends by itself, the other by closing */
    CHECK(!ask(&bed, &q, "silent.test."));
    wait_all(&bed);
    bed_close(&bed);
}

/* A port that nobody else gets while SERVER has it, and where nobody is: what is bound by TCP and does not
 * listen refuses, and so does, for others, what is connected by UDP to itself. */
static void take_dead_port(struct dns_server *server, char address[32])
{
    struct sockaddr_in own;
    socklen_t          len = sizeof(own);

    memset(server, 0, sizeof(*server));
    CHECK(dns_server_bind(server));
    CHECK_INT(getsockname(server->udp, (struct sockaddr *)&own, &len), 0);
    CHECK_INT(connect(server->udp, (struct sockaddr *)&own, len), 0);
    close(server->tcp);
    server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(server->tcp, (struct sockaddr *)&own, len), 0);
    snprintf(address, 32, "127.0.0.1:%u", server->port);
}

static void give_back(struct dns_server *server)
{
    close(server->udp);
    close(server->tcp);
}

/* c-ares loses the refusal of one of two datagrams sent in a row, and waits for that one. */
TEST(a_port_where_no_server_is_fails_within_the_bound)
{
    char              dead[32];
    struct dns_server nobody;
    struct bed        bed;
    struct question   q;

    take_dead_port(&nobody, dead);
    open_with(&bed, &(struct dns_options){ .servers = dead, .timeout_ms = 100, .tries = 2 });
    resolve(&bed, &q, "four.test.");
    CHECK(q.query.rc == ERR_SYSTEM || q.query.rc == ERR_TIMEOUT);
    bed_close(&bed);
    give_back(&nobody);
}

TEST(the_second_server_is_asked_when_the_first_is_down)
{
    char              dead[32], both[96];
    struct dns_server server, nobody;
    struct bed        bed;
    struct question   q;

    take_dead_port(&nobody, dead);
    dns_server_start(&server);
    snprintf(both, sizeof(both), "%s,%s", dead, server.address);
    open_with(&bed, &(struct dns_options){ .servers = both, .timeout_ms = 500 });
    resolve(&bed, &q, "four.test.");
    CHECK_INT(q.query.rc, 0);
    bed_close(&bed);
    dns_server_stop(&server);
    give_back(&nobody);
}

/* --- changes ---------------------------------------------------------------------------------- */

struct pass {
    struct timer timer;
    struct loop *loop;
    bool         over;
};

static void on_pass_over(struct timer *timer)
{
    struct pass *pass = container_of(timer, struct pass, timer);

    pass->over = true;
    loop_break(pass->loop);
}

static void pass_time(struct bed *bed, unsigned ms)
{
    struct pass pass = { .loop = bed->loop };

    timer_init(&pass.timer, on_pass_over);
    timer_start(&pass.timer, bed->loop, ms);
    while (!pass.over)
        loop_run(bed->loop);
}

TEST(a_changed_hosts_file_is_read_again)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    write_file(bed.hosts, "10.0.0.1 x.test\n");
    CHECK(ask(&bed, &q, "x.test"));
    write_file(bed.hosts, "10.0.0.22 x.test\n");
    pass_time(&bed, 1100);
    CHECK(ask(&bed, &q, "x.test"));
    CHECK_STR(text_of(&q, 0), "10.0.0.22:80");
    unlink(bed.hosts);
    pass_time(&bed, 1100);
    resolve(&bed, &q, "x.test");
    CHECK_INT(q.query.rc, ERR_NOT_FOUND);
    write_file(bed.hosts, "");
    bed_close(&bed);
}

TEST(a_changed_resolv_conf_is_read_again_and_nothing_old_is_kept)
{
    struct bed      bed;
    struct question q, slow;

    open_with(&bed, &(struct dns_options){ .timeout_ms = 2000, .tries = 1 });
    resolve(&bed, &q, "nothing");
    CHECK_INT(q.query.rc, ERR_NOT_FOUND);
    CHECK(!ask(&bed, &slow, "silent.test."));
    write_file(bed.resolv, "search elsewhere.test corp.test\noptions ndots:2\n");
    pass_time(&bed, 1100);
    wait_all(&bed);
    CHECK_INT(slow.answers, 1);
    CHECK(!ask(&bed, &q, "nothing"));
    wait_all(&bed);
    CHECK_INT(q.query.rc, ERR_NOT_FOUND);
    bed_close(&bed);
}

/* --- calling off ------------------------------------------------------------------------------- */

TEST(a_cancelled_question_hears_nothing_and_its_answer_is_kept)
{
    struct bed      bed;
    struct question gone, other;

    bed_open(&bed);
    CHECK(!ask(&bed, &gone, "four.test"));
    CHECK(!ask(&bed, &other, "both.test"));
    dns_cancel(&gone.query);
    dns_cancel(&gone.query);
    bed.left--;
    CHECK_INT(dns_pending(bed.dns), 1);
    wait_all(&bed);
    pass_time(&bed, 50);
    CHECK_INT(gone.answers, 0);
    CHECK(ask(&bed, &gone, "four.test"));
    CHECK_INT(gone.query.count, 1);
    bed_close(&bed);
}

TEST(closing_with_a_lookup_under_way_is_clean)
{
    struct bed      bed;
    struct question q;

    bed_open(&bed);
    CHECK(!ask(&bed, &q, "silent.test"));
    dns_cancel(&q.query);
    bed_close(&bed);
}

/* --- bounds ------------------------------------------------------------------------------------ */

TEST(two_hundred_names_at_once_are_all_answered)
{
    static struct question q[200];
    struct bed             bed;
    char                   name[32];

    open_with(&bed, &(struct dns_options){ .timeout_ms = 5000 });
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "host%u.test", i);
        CHECK(!ask(&bed, &q[i], name));
    }
    wait_all(&bed);
    for (unsigned i = 0; i < 200; i++)
        CHECK_INT(q[i].query.rc, 0);
    bed_close(&bed);
}

TEST(the_name_unused_for_longest_makes_room)
{
    struct bed      bed;
    struct question q;
    char            name[32];

    open_with(&bed, &(struct dns_options){ .timeout_ms = 5000 });
    resolve(&bed, &q, "four.test");
    resolve(&bed, &q, "both.test");
    for (unsigned i = 0; i < 1023; i++) {
        snprintf(name, sizeof(name), "host%u.test", i);
        resolve(&bed, &q, name);
        CHECK(ask(&bed, &q, "four.test"));
    }
    CHECK(!ask(&bed, &q, "both.test"));
    wait_all(&bed);
    bed_close(&bed);
}

TEST(too_many_names_at_once_are_refused)
{
    static struct question q[1025];
    struct bed             bed;
    char                   name[32];

    open_with(&bed, &(struct dns_options){ .timeout_ms = 100, .tries = 1 });
    for (unsigned i = 0; i < 1024; i++) {
        snprintf(name, sizeof(name), "silent.n%u.test.", i);
        CHECK(!ask(&bed, &q[i], name));
    }
    CHECK(ask(&bed, &q[1024], "four.test"));
    CHECK_INT(q[1024].query.rc, ERR_BUSY);
    wait_all(&bed);
    do { /* its time is short */
        CHECK(!ask(&bed, &q[1024], "four.test"));
        wait_all(&bed);
    } while (q[1024].query.rc == ERR_TIMEOUT);
    CHECK_INT(q[1024].query.rc, 0);
    bed_close(&bed);
}

int main(void)
{
    return check_run();
}
