#include "net/networks.h"

#include "net/addr.h"
#include "support/check.h"

static struct networks networks;

static bool is_list(const char *text)
{
    struct str wrong;

    return networks_parse(&networks, str_of(text), &wrong);
}

static bool has(const char *address)
{
    struct addr peer;

    CHECK(addr_parse(&peer, address, NULL) == 0);
    return networks_has(&networks, &peer);
}

TEST(names_and_networks_stand_in_one_list)
{
    CHECK(is_list("192.0.2.0/24, loopback,2001:db8::7"));
    CHECK(has("192.0.2.9:80"));
    CHECK(has("127.1.2.3:80"));
    CHECK(has("[::1]:80"));
    CHECK(has("[2001:db8::7]:80"));
    CHECK(!has("192.0.3.9:80"));
    CHECK(!has("[2001:db8::8]:80"));
    CHECK(!has("10.0.0.1:80"));
}

TEST(private_has_the_networks_of_nobody_alone)
{
    CHECK(is_list("private"));
    CHECK(has("10.1.2.3:80"));
    CHECK(has("172.31.0.1:80"));
    CHECK(has("192.168.7.7:80"));
    CHECK(has("[fd00::1]:80"));
    CHECK(!has("127.0.0.1:80"));
    CHECK(!has("172.32.0.1:80"));
}

TEST(peers_of_a_unix_socket_are_on_this_machine)
{
    CHECK(is_list("loopback"));
    CHECK(has("unix:/run/x.sock"));
    CHECK(is_list("127.0.0.1,private"));
    CHECK(!has("unix:/run/x.sock"));
}

TEST(an_empty_list_has_nobody)
{
    CHECK(is_list(""));
    CHECK(networks_is_empty(&networks));
    CHECK(!has("127.0.0.1:80"));
    CHECK(!has("unix:/run/x.sock"));
    CHECK(is_list("0.0.0.0/0"));
    CHECK(!networks_is_empty(&networks));
}

TEST(what_is_no_network_is_named)
{
    struct str wrong;

    CHECK(!networks_parse(&networks, STR("loopback,10.0.0.0/33"), &wrong));
    CHECK(str_is(wrong, STR("10.0.0.0/33")));
    CHECK(!networks_parse(&networks, STR("Loopback"), &wrong));
    CHECK(!networks_parse(&networks, STR("10.0.0.1,,10.0.0.2"), &wrong));
}

TEST(the_list_has_a_bound)
{
    char text[NETWORKS_MAX * 4 + 8] = "::1";

    for (unsigned i = 1; i < NETWORKS_MAX; i++)
        strcat(text, ",::1");
    CHECK(is_list(text));
    strcat(text, ",::1");
    CHECK(!is_list(text));
}

int main(void)
{
    return check_run();
}
