/* links: srv_base
 *
 * Any text is a date or none; a date that was read is written as an IMF-fixdate that reads the same. */
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char    text[CLOCK_HTTP_DATE_LEN], iso[CLOCK_ISO_LEN];
    int64_t seconds, again;

    if (!clock_parse_http_date(str_make((const char *)bytes, len), &seconds))
        return 0;
    /* Read but not written: the year 0, and the leap second that ends 9999. */
    if (seconds < -62135596800 || seconds > 253402300799)
        return 0;
    clock_http_date(text, seconds);
    clock_iso(iso, seconds * 1000);
    if (!clock_parse_http_date(str_make(text, sizeof(text)), &again) || again != seconds)
        abort();
    return 0;
}
