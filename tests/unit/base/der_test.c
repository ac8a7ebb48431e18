#include "base/der.h"

#include <string.h>

#include "support/check.h"

static struct der der;

#define CHECK_DER(want) CHECK_MEM((const char *)der.at, der_len(&der), want, sizeof(want) - 1)

TEST(what_is_added_stands_in_front)
{
    der_init(&der);
    CHECK_INT(der_len(&der), 0);
    der_add(&der, "b", 1);
    der_add(&der, "a", 1);
    CHECK_DER("ab");
}

TEST(elements_have_their_tag_and_length_and_lie_in_one_another)
{
    const unsigned char *end;

    der_init(&der);
    end = der.at;
    der_add_element(&der, DER_INTEGER, "\x05", 1);
    der_add_element(&der, DER_UTF8, "x", 1);
    der_wrap(&der, end, DER_SEQUENCE);
    CHECK_DER("\x30\x06\x0c\x01x\x02\x01\x05");
}

TEST(an_element_without_content_is_one)
{
    der_init(&der);
    der_add_element(&der, DER_SEQUENCE, NULL, 0);
    CHECK_DER("\x30\0");
}

static void check_length(size_t len, const char *want, size_t want_len)
{
    static const unsigned char zeros[1 << 14];

    der_init(&der);
    der_add_element(&der, DER_OCTETS, zeros, len);
    CHECK_INT(der_len(&der), len + 1 + want_len);
    CHECK_MEM((const char *)der.at + 1, want_len, want, want_len);
}

TEST(lengths_from_128_on_say_how_many_bytes_they_have)
{
    check_length(127, "\x7f", 1);
    check_length(128, "\x81\x80", 2);
    check_length(255, "\x81\xff", 2);
    check_length(256, "\x82\x01\x00", 3);
    check_length(0x1234, "\x82\x12\x34", 3);
}

TEST(what_does_not_fit_fails_and_stays_so)
{
    static const unsigned char zeros[DER_BYTES_MAX];

    der_init(&der);
    der_add(&der, zeros, DER_BYTES_MAX);
    CHECK(!der.failed);
    der_add(&der, "a", 1);
    CHECK(der.failed);
    CHECK_INT(der_len(&der), DER_BYTES_MAX);
    der_init(&der);
    CHECK(!der.failed);
    der_add_element(&der, DER_OCTETS, zeros, DER_BYTES_MAX);
    CHECK(der.failed);
    der_add(&der, "a", 1);
    CHECK(der.failed);
}

int main(void)
{
    return check_run();
}
