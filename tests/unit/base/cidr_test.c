#include "base/cidr.h"

#include "base/compiler.h"
#include "support/check.h"

static bool lies_in(const char *network, const char *address)
{
    struct cidr cidr;
    struct ip   ip;

    CHECK(cidr_parse(&cidr, str_of(network)));
    CHECK(ip_parse(&ip, str_of(address)));
    return cidr_has(&cidr, &ip);
}

TEST(addresses_lie_in_their_networks)
{
    CHECK(lies_in("10.0.0.0/8", "10.255.255.255"));
    CHECK(!lies_in("10.0.0.0/8", "11.0.0.0"));
    CHECK(lies_in("172.16.0.0/12", "172.31.255.255"));
    CHECK(!lies_in("172.16.0.0/12", "172.32.0.0"));
    CHECK(lies_in("192.0.2.7", "192.0.2.7"));
    CHECK(!lies_in("192.0.2.7/32", "192.0.2.6"));
    CHECK(lies_in("0.0.0.0/0", "1.2.3.4"));
    CHECK(!lies_in("0.0.0.0/0", "2001:db8::1"));
    CHECK(lies_in("::/0", "1.2.3.4"));
    CHECK(lies_in("2001:db8::/33", "2001:db8:7fff::1"));
    CHECK(!lies_in("2001:db8::/33", "2001:db8:8000::1"));
    CHECK(lies_in("::1", "::1"));
}

TEST(a_mapped_address_is_the_ipv4_one)
{
    CHECK(lies_in("127.0.0.0/8", "::ffff:127.0.0.1"));
    CHECK(lies_in("::ffff:127.0.0.0/104", "127.3.2.1"));
}

TEST(bits_behind_the_prefix_do_not_count)
{
    CHECK(lies_in("10.1.2.3/8", "10.9.9.9"));
    CHECK(lies_in("10.1.2.3/15", "10.0.0.1"));
}

TEST(what_is_no_address_or_network_is_refused)
{
    static const char *const WRONG[] = {
        "",          "10",
        "10.0.0",    "10.0.0.256",
        "010.0.0.1", "10.0.0.1:80",
        "[::1]",     "::1%lo",
        "unknown",   "1.2.3.4 ",
        "::1::",     "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23.24.25"
    };
    static const char *const BITS[] = { "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129",
                                        "::/1x",       "/8",        "10.0.0.0/8/8" };
    struct cidr              cidr;
    struct ip                ip;

    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++)
        CHECK(!ip_parse(&ip, str_of(WRONG[i])) && !cidr_parse(&cidr, str_of(WRONG[i])));
    for (size_t i = 0; i < ARRAY_LEN(BITS); i++)
        CHECK(!cidr_parse(&cidr, str_of(BITS[i])));
    CHECK(!ip_parse(&ip, str_make("1.2.3.4\0", 8)));
}

TEST(an_address_has_one_spelling)
{
    static const char *const PAIRS[][2] = { { "::ffff:1.2.3.4", "1.2.3.4" },
                                            { "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
                                            { "127.0.0.1", "127.0.0.1" } };
    char                     text[CIDR_TEXT_BYTES];
    struct ip                ip;

    for (size_t i = 0; i < ARRAY_LEN(PAIRS); i++) {
        CHECK(ip_parse(&ip, str_of(PAIRS[i][0])));
        CHECK_STR(ip_format(&ip, text), PAIRS[i][1]);
    }
}

int main(void)
{
    return check_run();
}
