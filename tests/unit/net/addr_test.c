#include "net/addr.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <sys/un.h>

#include "base/err.h"
#include "support/check.h"

static const char *round_trip(const char *text)
{
    static char to[ADDR_TEXT_BYTES];
    struct addr addr;
    struct err  err;

    CHECK_INT(addr_parse(&addr, text, &err), 0);
    return addr_format(&addr, to);
}

TEST(what_is_parsed_is_formatted_alike)
{
    static const char *const texts[] = {
        "127.0.0.1:8080",  "0.0.0.0:0",          "255.255.255.255:65535",
        "[::1]:80",        "[::]:443",           "[2001:db8::8a2e:370:7334]:1",
        "[fe80::1%lo]:80", "unix:/run/srv.sock", "unix:a",
        "unix:@x",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_STR(round_trip(texts[i]), texts[i]);
}

TEST(localhost_is_the_loopback_address)
{
    CHECK_STR(round_trip("localhost:80"), "127.0.0.1:80");
}

TEST(a_scope_without_an_interface_of_that_number_keeps_the_number)
{
    CHECK_STR(round_trip("[fe80::1%4000000]:80"), "[fe80::1%4000000]:80");
}

static void check_refused(const char *text, const char *because)
{
    struct addr addr;
    struct err  err;
    int         rc = addr_parse(&addr, text, &err);

    CHECK(rc == ERR_INVALID || rc == ERR_TOO_LARGE);
    if (!strstr(err.text, because))
        CHECK_STR(err.text, because);
}

TEST(what_is_no_address_is_refused_with_the_reason)
{
    char long_path[200] = "unix:/";

    check_refused("", "HOST:PORT");
    check_refused("8080", "HOST:PORT");
    check_refused(":8080", "HOST:PORT");
    check_refused("127.0.0.1:", "not a port");
    check_refused("127.0.0.1:65536", "not a port");
    check_refused("127.0.0.1:+1", "not a port");
    check_refused("127.0.0.1:80 ", "not a port");
    check_refused("127.0.0.256:80", "not an IP address");
    check_refused("127.1:80", "not an IP address");
    check_refused("example.org:80", "not an IP address");
    check_refused("::1:80", "brackets");
    check_refused("[::1:80", "not an IP address");
    check_refused("[127.0.0.1]:80", "not an IP address");
    check_refused("[]:80", "not an IP address");
    check_refused("[::1%]:80", "not an IP address");
    check_refused("[::1%nosuchinterface]:80", "not an IP address");
    check_refused("[1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22:23:24:25:26:27]:80",
                  "not an IP address");
    check_refused("unix:", "empty");
    check_refused("unix:@", "empty");
    memset(long_path + 6, 'x', sizeof(long_path) - 7);
    check_refused(long_path, "at most 107");
}

TEST(a_host_is_read_with_and_without_brackets)
{
    struct addr bare, bracketed;
    struct err  err;

    CHECK(addr_parse_host(&bare, "::1", 80, &err) == 0);
    CHECK(addr_parse_host(&bracketed, "[::1]", 80, &err) == 0);
    CHECK(addr_is_equal(&bare, &bracketed));
    CHECK_INT(addr_parse_host(&bare, "", 80, &err), ERR_INVALID);
    CHECK_INT(addr_parse_host(&bare, "x", 80, &err), ERR_INVALID);
}

TEST(the_kernels_form_and_back_is_the_same_address)
{
    static const char *const texts[] = { "127.0.0.1:8080", "[2001:db8::1]:443", "[fe80::1%lo]:1" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sockaddr_storage sa;
        struct addr             addr, back;
        socklen_t               len;

        CHECK(addr_parse(&addr, texts[i], NULL) == 0);
        len = addr_to_sockaddr(&addr, &sa);
        addr_from_sockaddr(&back, (struct sockaddr *)&sa, len);
        CHECK(addr_is_equal(&addr, &back));
    }
}

TEST(a_unix_path_has_its_exact_length)
{
    struct sockaddr_storage sa;
    struct sockaddr_un     *un = (struct sockaddr_un *)&sa;
    struct addr             addr;
    size_t                  base = offsetof(struct sockaddr_un, sun_path);

    CHECK(addr_parse(&addr, "unix:/tmp/s", NULL) == 0);
    CHECK_INT(addr_to_sockaddr(&addr, &sa), base + sizeof("/tmp/s"));
    CHECK_STR(un->sun_path, "/tmp/s");
    CHECK(addr_parse(&addr, "unix:@ab", NULL) == 0);
    CHECK_INT(addr_to_sockaddr(&addr, &sa), base + 3);
    CHECK_MEM(un->sun_path, 3, "\0ab", 3);
}

TEST(ipv4_mapped_into_ipv6_is_ipv4)
{
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(5) };
    struct addr         addr;
    char                text[ADDR_TEXT_BYTES];

    CHECK(inet_pton(AF_INET6, "::ffff:10.1.2.3", &in6.sin6_addr) == 1);
    addr_from_sockaddr(&addr, (struct sockaddr *)&in6, sizeof(in6));
    CHECK_STR(addr_format(&addr, text), "10.1.2.3:5");
}

TEST(a_host_alone_has_neither_port_nor_brackets)
{
    struct addr addr;
    char        text[ADDR_TEXT_BYTES];

    CHECK(addr_parse(&addr, "[::1]:80", NULL) == 0);
    CHECK_STR(addr_format_host(&addr, text), "::1");
    CHECK(addr_parse(&addr, "10.0.0.1:80", NULL) == 0);
    CHECK_STR(addr_format_host(&addr, text), "10.0.0.1");
    CHECK(addr_parse(&addr, "unix:/x", NULL) == 0);
    CHECK_STR(addr_format_host(&addr, text), "unix");
}

TEST(an_ipv4_address_is_written_as_the_system_writes_it)
{
    for (unsigned octet = 0; octet < 256; octet++) {
        struct addr addr = { .family = AF_INET };
        char        text[ADDR_TEXT_BYTES], wanted[INET_ADDRSTRLEN];

        addr.at.v4.s_addr = htonl(octet << 24 | (255 - octet) << 16 | octet << 8 | octet);
        inet_ntop(AF_INET, &addr.at.v4, wanted, sizeof(wanted));
        CHECK_STR(addr_format_host(&addr, text), wanted);
    }
}

TEST(a_peer_without_a_name_is_unix_alone)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct addr        addr, nobody;
    char               text[ADDR_TEXT_BYTES];

    addr_from_sockaddr(&addr, (struct sockaddr *)&un, sizeof(un.sun_family));
    CHECK_STR(addr_format(&addr, text), "unix:");
    addr_from_sockaddr(&nobody, (struct sockaddr *)&un, 0);
    CHECK_INT(nobody.family, AF_UNSPEC);
    CHECK(!addr_is_equal(&addr, &nobody));
}

int main(void)
{
    return check_run();
}
