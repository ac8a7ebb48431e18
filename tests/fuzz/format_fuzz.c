/* Formats of text: what is one stays within the bytes and bounds that it is made of. links: srv_base */
#include <assert.h>
#include <stdint.h>

#include "base/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_ascii(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        assert(text.at[i] > 0x20 && text.at[i] < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = str_make((const char *)bytes, len);
    bool       is   = false;

    is |= format_is_url(text);
    is |= format_is_ipv4(text) | format_is_ipv6(text);
    is |= format_is_date(text) | format_is_time(text) | format_is_datetime(text);
    is |= format_is_uuid(text) | format_is_slug(text) | format_is_hex(text);
    is |= format_is_base64(text);
    if (format_is_host(text)) {
        assert(len >= 1 && len <= 253);
        is = true;
    }
    if (format_is_email(text)) {
        assert(len <= 254);
        assert(format_is_host(str_from(text, str_find(text, '@') + 1)));
        is = true;
    }
    if (is)
        check_ascii(text);
    return 0;
}
