#include "net/proxy_header.h"

#include <stdlib.h>

#include "support/check.h"

#define QUIT "\r\n\r\n\0\r\nQUIT\n"
#define V4   "\x11\0\x0c\xc0\0\2\7\x0a\0\0\1\xdc\x04\1\xbb" /* 192.0.2.7:56324 to 10.0.0.1:443 */

static struct proxy_header header;

/* In a copy of just its size, so that the sanitizers see a look beyond it. */
static enum proxy_reading reads(struct str bytes)
{
    char              *copy = malloc(bytes.len + !bytes.len);
    enum proxy_reading reading;

    CHECK(copy);
    if (bytes.len)
        memcpy(copy, bytes.at, bytes.len);
    reading = proxy_header_read(&header, str_make(copy, bytes.len));
    free(copy);
    return reading;
}

static bool tells(struct str bytes, const char *client)
{
    char text[ADDR_TEXT_BYTES];

    if (reads(bytes) != PROXY_DONE || !header.told)
        return false;
    return strcmp(addr_format(&header.client, text), client) == 0;
}

static bool tells_nothing(struct str bytes)
{
    return reads(bytes) == PROXY_DONE && !header.told;
}

#define BAD(literal)   CHECK_INT(reads(STR(literal)), PROXY_BAD)
#define MORE(literal)  CHECK_INT(reads(STR(literal)), PROXY_MORE)
#define LOCAL(literal) CHECK(tells_nothing(STR(literal)))

TEST(a_line_tells_the_client)
{
    CHECK(tells(STR("PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n"), "192.0.2.7:56324"));
    CHECK(tells(STR("PROXY TCP6 2001:DB8::7 ::1 0 65535\r\n"), "[2001:db8::7]:0"));
    CHECK(tells(STR("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"));
}

TEST(what_follows_is_not_the_headers)
{
    CHECK(tells(STR("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\n"), "1.2.3.4:1"));
    CHECK_INT(header.used, 32);
    CHECK(tells(STR(QUIT "\x21" V4 "GET /"), "192.0.2.7:56324"));
    CHECK_INT(header.used, 28);
}

TEST(an_unknown_client_is_not_told)
{
    LOCAL("PROXY UNKNOWN\r\n");
    LOCAL("PROXY UNKNOWN whatever  this is\r\n");
    LOCAL("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
          "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"); /* 107 bytes */
    BAD("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 655350\r\n");
}

TEST(every_piece_of_a_header_waits_for_the_rest)
{
    struct str whole[] = { STR("PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n"), STR(QUIT "\x21" V4),
                           STR(QUIT "\x20\0\0\3abc") };

    for (size_t i = 0; i < 3; i++) {
        for (size_t len = 0; len < whole[i].len; len++)
            CHECK_INT(reads(str_make(whole[i].at, len)), PROXY_MORE);
        CHECK_INT(reads(whole[i]), PROXY_DONE);
        CHECK_INT(header.used, whole[i].len);
    }
}

TEST(what_is_no_header_is_refused_at_its_first_byte)
{
    BAD("G");
    BAD("GET / HTTP/1.1\r\n\r\n");
    BAD("PROXX");
    BAD("PROXY\t");
    BAD("proxy ");
    BAD("\r\n\r\nG");
    BAD("\r\n\r\n\0\r\nQUIT\r");
}

TEST(a_line_must_be_exact)
{
    BAD("PROXY \r\n");
    BAD("PROXY TCP4\r\n");
    BAD("PROXY  TCP4 1.2.3.4 5.6.7.8 1 2\r\n");
    BAD("PROXY TCP4 1.2.3.4  5.6.7.8 1 2\r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n");
    BAD("PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n");
    BAD("PROXY TCP4 01.2.3.4 5.6.7.8 1 2\r\n");
    BAD("PROXY TCP4 1.2.3.256 5.6.7.8 1 2\r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n");
    BAD("PROXY TCP4 1.2.3.4\0 5.6.7.8 1 2\r\n");
    BAD("PROXY TCP4 ::1 ::1 1 2\r\n");
    BAD("PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n");
    BAD("PROXY TCP6 fe80::1%lo ::1 1 2\r\n");
    BAD("PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n");
    BAD("PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n");
    BAD("PROXY UNKNOWNS\r\n");
    BAD("PROXY unknown\r\n");
}

TEST(a_line_ends_in_both_and_in_time)
{
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n");
    BAD("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\rX");
    BAD("PROXY UNKNOWN \n\r\n");
    MORE(
        "PROXY UNKNOWN aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaa"); /* 106 */
    BAD("PROXY UNKNOWN aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaa");
}

TEST(a_binary_header_tells_the_client)
{
    CHECK(tells(STR(QUIT "\x21" V4), "192.0.2.7:56324"));
    CHECK(tells(STR(QUIT "\x21\x21\0\x24"
                         "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7"
                         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                         "\x00\x50\1\xbb"),
                "[2001:db8::7]:80"));
}

TEST(a_mapped_address_is_the_ipv4_one)
{
    CHECK(tells(STR("PROXY TCP6 ::ffff:192.0.2.7 ::1 80 2\r\n"), "192.0.2.7:80"));
    CHECK(tells(STR(QUIT "\x21\x21\0\x24"
                         "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\7"
                         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                         "\x00\x50\1\xbb"),
                "192.0.2.7:80"));
}

TEST(what_follows_the_addresses_is_skipped)
{
    CHECK(tells(STR(QUIT "\x21\x11\0\x11\xc0\0\2\7\x0a\0\0\1\xdc\x04\1\xbb\x04\0\2ab"),
                "192.0.2.7:56324"));
    CHECK_INT(header.used, 33);
    CHECK(tells(STR(QUIT "\x21\x11\0\x0f\xc0\0\2\7\x0a\0\0\1\xdc\x04\1\xbb\xff\xff\xff"),
                "192.0.2.7:56324"));
}

TEST(a_proxy_that_speaks_for_itself_tells_nothing)
{
    LOCAL(QUIT "\x20\0\0\0");
    LOCAL(QUIT "\x20" V4);          /* whatever its block says, */
    LOCAL(QUIT "\x20\xff\0\4abcd"); /* and its family, which is none */
    LOCAL(QUIT "\x21\0\0\0");       /* unspecified */
    LOCAL(QUIT "\x21\1\0\2ab");
    LOCAL(QUIT "\x21\x12\0\x0c\xc0\0\2\7\x0a\0\0\1\xdc\x04\1\xbb"); /* a datagram's */
}

TEST(unix_addresses_are_taken_and_ignored)
{
    char bytes[16 + 216] = QUIT "\x21\x31\0\xd8/run/client.sock";

    CHECK(tells_nothing(str_make(bytes, sizeof(bytes))));
    CHECK_INT(header.used, sizeof(bytes));
    bytes[15] = (char)0xd7;
    CHECK_INT(reads(str_make(bytes, sizeof(bytes))), PROXY_BAD);
}

TEST(a_binary_header_must_be_exact)
{
    BAD(QUIT "\x11");         /* version 1, */
    BAD(QUIT "\x31");         /* 3 */
    BAD(QUIT "\x22");         /* no such command, */
    BAD(QUIT "\x21\x41\0\0"); /* family, */
    BAD(QUIT "\x21\x13\0\0"); /* protocol */
    BAD(QUIT "\x21\x11\0\x0b\xc0\0\2\7\x0a\0\0\1\xdc\x04\1");
    BAD(QUIT "\x21\x12\0\0"); /* also where nothing is taken of it */
}

TEST(a_binary_header_has_a_bound)
{
    char bytes[PROXY_HEADER_V2_BYTES_MAX] = QUIT "\x20\0\x0f\xf0";

    CHECK(tells_nothing(str_make(bytes, sizeof(bytes))));
    CHECK_INT(header.used, sizeof(bytes));
    bytes[15] = (char)0xf1;
    CHECK_INT(reads(str_make(bytes, 16)), PROXY_BAD);
    BAD(QUIT "\x20\0\xff\xff");
}

int main(void)
{
    return check_run();
}
