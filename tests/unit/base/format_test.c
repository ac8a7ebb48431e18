/* Formats of text at the ends of their buffers; what each takes stands in tests/spec/base/formats_spec.lua. */
#include "base/format.h"

#include <stdlib.h>

#include "base/compiler.h"

#include "support/check.h"

static bool (*const FORMATS[])(struct str text) = {
    format_is_host, format_is_ipv4, format_is_ipv6, format_is_email,
    format_is_url,  format_is_date, format_is_time, format_is_datetime,
    format_is_uuid, format_is_slug, format_is_hex,  format_is_base64,
};

/* In memory of its own length, so that the sanitizer sees what reads beyond it. */
static bool is_one(bool (*format)(struct str text), const char *text, size_t len)
{
    char *copy = malloc(len + !len);
    bool  is;

    memcpy(copy, text, len);
    is = format(str_make(copy, len));
    free(copy);
    return is;
}

TEST(every_beginning_of_a_text_is_looked_at_within_its_bounds)
{
    static const char *const TEXTS[] = {
        "https://user:pw@[2001:db8::1]:8080/a%20b?c=d#%41",
        "http://a:65535",
        "a.b+c@x-y.example",
        "2001:db8::192.0.2.1",
        "2024-02-29T23:59:60.123+00:00",
        "018f4d7e-9c3a-7bbb-8000-0123456789ab",
        "aGk=",
    };
    unsigned accepted = 0;

    for (unsigned i = 0; i < ARRAY_LEN(TEXTS); i++)
        for (unsigned f = 0; f < ARRAY_LEN(FORMATS); f++) {
            for (size_t len = 0; len < strlen(TEXTS[i]); len++)
                is_one(FORMATS[f], TEXTS[i], len);
            accepted += is_one(FORMATS[f], TEXTS[i], strlen(TEXTS[i]));
        }
    CHECK_INT(accepted, ARRAY_LEN(TEXTS) + 2); /* the UUID could be a slug or a host */
}

TEST(a_nul_ends_nothing)
{
    CHECK(!is_one(format_is_ipv4, "127.0.0.1\0", 10));
    CHECK(!is_one(format_is_ipv6, "::1\0", 4));
    CHECK(!is_one(format_is_host, "a\0b", 3));
    CHECK(!is_one(format_is_email, "a@b.c\0", 6));
    CHECK(!is_one(format_is_url, "http://a/\0", 10));
    CHECK(!is_one(format_is_slug, "a\0", 2));
}

TEST(bytes_beyond_ascii_are_in_no_format)
{
    for (unsigned f = 0; f < ARRAY_LEN(FORMATS); f++)
        for (int byte = 0x80; byte <= 0xFF; byte++)
            CHECK(!is_one(FORMATS[f], (char[]){ 'a', (char)byte }, 2));
}

int main(void)
{
    return check_run();
}
