#include "http/route_value.h"

#include "base/codec.h"
#include "base/compiler.h"

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Cuts the digits off *TEXT's front; their number. */
static size_t skip_digits(struct str *text)
{
    size_t count = 0;

    while (count < text->len && is_digit(text->at[count]))
        count++;
    *text = str_from(*text, count);
    return count;
}

static bool skip_byte(struct str *text, char byte)
{
    if (text->len == 0 || text->at[0] != byte)
        return false;
    *text = str_from(*text, 1);
    return true;
}

/* Beyond 2^53 a number would not be the one that was sent. */
static bool is_int(struct str text)
{
    uint64_t value;

    skip_byte(&text, '-');
    return str_to_u64(text, UINT64_C(1) << 53, &value);
}

static bool is_number(struct str text)
{
    skip_byte(&text, '-');
    if (skip_digits(&text) == 0)
        return false;
    if (skip_byte(&text, '.') && skip_digits(&text) == 0)
        return false;
    if (skip_byte(&text, 'e') || skip_byte(&text, 'E')) {
        if (!skip_byte(&text, '-'))
            skip_byte(&text, '+');
        if (skip_digits(&text) == 0)
            return false;
    }
    return text.len == 0;
}

static bool is_hex(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (codec_hex_digit(text.at[i]) < 0)
            return false;
    return true;
}

static bool is_uuid(struct str text)
{
    static const size_t GROUPS[] = { 8, 4, 4, 4, 12 };

    if (text.len != 36)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
        if ((i && !skip_byte(&text, '-')) || !is_hex(str_make(text.at, GROUPS[i])))
            return false;
        text = str_from(text, GROUPS[i]);
    }
    return true;
}

static bool is_slug(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.at[i];

        if (!(byte >= 'a' && byte <= 'z') && !is_digit(byte) && byte != '-')
            return false;
    }
    return true;
}

static unsigned two_digits(const char *at)
{
    return (unsigned)(at[0] - '0') * 10 + (unsigned)(at[1] - '0');
}

static bool is_date(struct str text)
{
    static const unsigned char DAYS[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    unsigned                   year, month, day;

    if (text.len != 10 || text.at[4] != '-' || text.at[7] != '-')
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (i != 4 && i != 7 && !is_digit(text.at[i]))
            return false;
    year  = two_digits(text.at) * 100 + two_digits(text.at + 2);
    month = two_digits(text.at + 5);
    day   = two_digits(text.at + 8);
    if (month < 1 || month > 12 || day < 1 || day > DAYS[month - 1])
        return false;
    return month != 2 || day != 29 || (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static bool is_word_of(struct str rule, struct str text)
{
    struct str word;

    while (str_next(&rule, '|', &word))
        if (str_is(word, text))
            return true;
    return false;
}

bool route_value_fits(const struct route_param *param, struct str value, struct route_accept accept)
{
    if (value.len == 0)
        return param->type == ROUTE_REST;

    switch (param->type) {
    case ROUTE_TEXT:
    case ROUTE_REST: return true;
    case ROUTE_INT: return is_int(value);
    case ROUTE_NUMBER: return is_number(value);
    case ROUTE_UUID: return is_uuid(value);
    case ROUTE_SLUG: return is_slug(value);
    case ROUTE_HEX: return is_hex(value);
    case ROUTE_DATE: return is_date(value);
    case ROUTE_WORDS: return is_word_of(param->rule, value);
    case ROUTE_LUA: return accept.fn && accept.fn(accept.arg, param->rule, value);
    }
    return false;
}
