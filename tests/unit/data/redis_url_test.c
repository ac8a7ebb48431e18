#include "data/redis_url.h"

#include "base/err.h"
#include "support/check.h"

static struct redis_target target;
static struct err          err;

static int parse(const char *url)
{
    return redis_url_parse(&target, str_of(url), &err);
}

TEST(a_host_alone_has_the_usual_port)
{
    CHECK_INT(parse("redis://cache.example"), 0);
    CHECK_STR(target.host, "cache.example");
    CHECK_INT(target.port, 6379);
    CHECK_INT(target.database, 0);
    CHECK(!target.user[0] && !target.password[0] && !target.path[0]);
}

TEST(user_password_port_and_database_are_read)
{
    CHECK_INT(parse("redis://app:p%40ss%3a@127.0.0.1:6380/7"), 0);
    CHECK_STR(target.user, "app");
    CHECK_STR(target.password, "p@ss:");
    CHECK_STR(target.host, "127.0.0.1");
    CHECK_INT(target.port, 6380);
    CHECK_INT(target.database, 7);
}

TEST(a_password_needs_no_user_and_may_hold_an_at)
{
    CHECK_INT(parse("redis://:secret@h"), 0);
    CHECK_STR(target.password, "secret");
    CHECK_INT(parse("redis://secret@h"), 0);
    CHECK_STR(target.password, "secret");
    CHECK_INT(parse("redis://:a@b@h"), 0);
    CHECK_STR(target.password, "a@b");
    CHECK_STR(target.host, "h");
}

TEST(an_ipv6_address_stands_in_brackets)
{
    char place[REDIS_PLACE_BYTES];

    CHECK_INT(parse("redis://[::1]:6380/"), 0);
    CHECK_STR(target.host, "::1");
    CHECK_INT(target.port, 6380);
    CHECK_STR(redis_target_place(&target, place), "[::1]:6380");
    CHECK(parse("redis://[::1") != 0);
}

TEST(a_unix_socket_is_a_path)
{
    char place[REDIS_PLACE_BYTES];

    CHECK_INT(parse("unix:/run/redis.sock"), 0);
    CHECK_STR(target.path, "/run/redis.sock");
    CHECK_STR(redis_target_place(&target, place), "/run/redis.sock");
    CHECK_INT(parse("redis+unix:///run/redis.sock?db=3"), 0);
    CHECK_STR(target.path, "/run/redis.sock");
    CHECK_INT(target.database, 3);
    CHECK_INT(parse("redis+unix://app:secret@/run/redis.sock"), 0);
    CHECK_STR(target.user, "app");
    CHECK_STR(target.path, "/run/redis.sock");
}

TEST(tls_is_asked_for_by_the_scheme)
{
    CHECK_INT(parse("redis://cache.example"), 0);
    CHECK(!target.has_tls);
    CHECK_INT(parse("rediss://:secret@cache.example:6380/2"), 0);
    CHECK(target.has_tls && !target.trusts_all);
    CHECK_STR(target.host, "cache.example");
    CHECK_STR(target.password, "secret");
    CHECK_INT(target.port, 6380);
    CHECK_INT(target.database, 2);
    CHECK_STR(target.files.ca, "");
    CHECK_STR(target.server_name, "");
}

TEST(what_tls_needs_stands_behind_a_question_mark)
{
    CHECK_INT(
        parse(
            "rediss://10.0.0.1/1?ca=/etc/my%20ca.pem&cert=/me.pem&key=/me.key&server_name=r.example"),
        0);
    CHECK_STR(target.files.ca, "/etc/my ca.pem");
    CHECK_STR(target.files.cert, "/me.pem");
    CHECK_STR(target.files.key, "/me.key");
    CHECK_STR(target.server_name, "r.example");
    CHECK_INT(target.database, 1);
    CHECK_INT(parse("rediss://h?verify=false"), 0);
    CHECK(target.trusts_all);
    CHECK_INT(parse("rediss://h?verify=true"), 0);
    CHECK(!target.trusts_all);
}

TEST(pins_are_hashes_of_public_keys)
{
    CHECK_INT(parse("rediss://h?pin=sha256/AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
                    "&pin=sha256//%2F%2F%2F%2F/////////////////////////////////////8="),
              0);
    CHECK_INT(target.pin_count, 2);
    for (int i = 0; i < TLS_PIN_BYTES; i++) {
        CHECK_INT(target.pins[0][i], i + 1);
        CHECK_INT(target.pins[1][i], 255);
    }
    CHECK_INT(parse("rediss://h"), 0);
    CHECK_INT(target.pin_count, 0);
}

TEST(more_pins_than_there_is_room_for_are_refused)
{
    char   url[1024] = "rediss://h?verify=true";
    size_t len       = strlen(url);

    for (int i = 0; i <= REDIS_PINS_MAX; i++) {
        CHECK_INT(parse(url), 0);
        len += (size_t)snprintf(url + len, sizeof(url) - len,
                                "&pin=sha256/AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=");
    }
    CHECK_INT(parse(url), ERR_INVALID);
}

TEST(what_is_no_url_of_redis_is_refused_without_its_password)
{
    static const char *const WRONG[] = {
        "",
        "redis:",
        "redis://",
        "http://h",
        "redis://h:0",
        "redis://h:",
        "redis://h:70000",
        "redis://h/x",
        "redis://h?a=b",
        "redis://h?verify=false",
        "rediss:h",
        "rediss://h?a=b",
        "rediss://h?verify=no",
        "rediss://h?ca=",
        "rediss://h?ca=here.pem",
        "rediss://h?server_name=",
        "rediss://h?key=/me.key",
        "rediss://h?pin=",
        "rediss://h?pin=sha256/AAAA",
        "rediss://h?pin=sha256/AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyE",
        "rediss://h?pin=sha1/AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        "redis://u:@h",
        "unix:",
        "redis://%zz@h",
        "redis://:a%00b@h",
        "unix:/s?x=1",
        "unix:/s?db=x",
        "redis+unix://host/path",
        "redis://[::1]6379",
        "redis://h/99999999",
    };

    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        CHECK_INT(parse(WRONG[i]), ERR_INVALID);
        CHECK(strstr(err.text, "redis://"));
    }
    CHECK(parse("redis://:hunter2@") != 0);
    CHECK(!strstr(err.text, "hunter2"));
}

int main(void)
{
    return check_run();
}
