/* Numbers as texts: read as the C library reads them, written so that they read back. As eight
 * bytes: every double survives. links: srv_base */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

static void check_double(double value)
{
    char          text[NUMBER_TEXT_MAX];
    struct number number;

    if (!isfinite(value))
        return;
    number_read(str_make(text, number_format(text, value)), &number);
    must(number.kind == NUMBER_REAL || number.kind == NUMBER_INTEGER);
    must(number.value == value && signbit(number.value) == signbit(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct number number;
    double        value;
    char         *text;

    if (len == sizeof(value)) {
        memcpy(&value, bytes, sizeof(value));
        check_double(value);
    }
    number_read(str_make((const char *)bytes, len), &number);
    must(number.len <= len);
    if (number.kind == NUMBER_NONE)
        return 0;
    text = malloc(number.len + 1);
    memcpy(text, bytes, number.len);
    text[number.len] = '\0';
    must(number.value == strtod(text, NULL));
    free(text);
    check_double(number.value);
    return 0;
}
