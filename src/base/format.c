#include "base/format.h"

#include <arpa/inet.h>

enum {
    HOST_BYTES_MAX       = 253,
    LABEL_BYTES_MAX      = 63,
    EMAIL_BYTES_MAX      = 254,
    LOCAL_PART_BYTES_MAX = 64,
    URL_BYTES_MAX        = 8192, /* what a request line may hold, so what a URL can be used for */
    PORT_DIGITS_MAX      = 5,
    PORT_MAX             = 65535,
    DATE_LEN             = 10,
    TIME_BYTES_MAX       = 64, /* RFC 3339 puts no bound on the digits of a fraction */
    DAY_MINUTES          = 24 * 60,
    UUID_TEXT_LEN        = 36,
};

/* --- bytes by what they may stand in ------------------------------------------------------------- */

enum kind {
    DIGIT  = 1 << 0,
    HEX    = 1 << 1,
    SLUG   = 1 << 2,
    LABEL  = 1 << 3, /* letters, digits, hyphen */
    ATOM   = 1 << 4, /* RFC 5322, 3.2.3 */
    NAME   = 1 << 5, /* RFC 3986: unreserved and sub-delims */
    USER   = 1 << 6, /* the same and ":" */
    TAIL   = 1 << 7, /* of path, query and fragment */
    BASE64 = 1 << 8,
};

#define URL     (NAME | USER | TAIL)
#define LETTER  (LABEL | ATOM | URL | BASE64)
#define UPPER   LETTER
#define LOWER   (LETTER | SLUG)
#define NUMERAL (LOWER | DIGIT | HEX)

static const unsigned short kinds[256] = {
    ['0' ... '9'] = NUMERAL,
    ['A' ... 'F'] = UPPER | HEX,
    ['G' ... 'Z'] = UPPER,
    ['a' ... 'f'] = LOWER | HEX,
    ['g' ... 'z'] = LOWER,
    ['-']         = SLUG | LABEL | ATOM | URL,
    ['!']         = ATOM | URL,
    ['$']         = ATOM | URL,
    ['&']         = ATOM | URL,
    ['\'']        = ATOM | URL,
    ['*']         = ATOM | URL,
    ['=']         = ATOM | URL,
    ['_']         = ATOM | URL,
    ['~']         = ATOM | URL,
    ['+']         = ATOM | URL | BASE64,
    ['/']         = ATOM | TAIL | BASE64,
    ['?']         = ATOM | TAIL,
    ['#']         = ATOM,
    ['%']         = ATOM,
    ['^']         = ATOM,
    ['`']         = ATOM,
    ['{']         = ATOM,
    ['|']         = ATOM,
    ['}']         = ATOM,
    ['.']         = URL,
    ['(']         = URL,
    [')']         = URL,
    [',']         = URL,
    [';']         = URL,
    [':']         = USER | TAIL,
    ['@']         = TAIL,
};

static bool is(char byte, enum kind kind)
{
    return kinds[(unsigned char)byte] & kind;
}

static bool are(struct str text, enum kind kind)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is(text.at[i], kind))
            return false;
    return true;
}

static struct str until(struct str text, size_t end)
{
    return str_make(text.at, end);
}

/* --- names of hosts, addresses of networks ------------------------------------------------------------ */

static bool is_label(struct str label)
{
    return label.len >= 1 && label.len <= LABEL_BYTES_MAX && are(label, LABEL) &&
           label.at[0] != '-' && label.at[label.len - 1] != '-';
}

static bool is_atom(struct str piece)
{
    return piece.len && are(piece, ATOM);
}

/* Every piece between the dots IS_ONE. */
static bool pieces_are(struct str text, bool (*is_one)(struct str piece))
{
    size_t end;

    while (end = str_find(text, '.'), is_one(until(text, end))) {
        if (end == text.len)
            return true;
        text = str_from(text, end + 1);
    }
    return false;
}

bool format_is_host(struct str text)
{
    return text.len <= HOST_BYTES_MAX && pieces_are(text, is_label);
}

static bool is_address(int family, struct str text)
{
    char            copy[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (text.len >= sizeof(copy) || str_find(text, '\0') < text.len)
        return false;
    if (text.len)
        memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return inet_pton(family, copy, &address) == 1;
}

bool format_is_ipv4(struct str text)
{
    return is_address(AF_INET, text);
}

bool format_is_ipv6(struct str text)
{
    return is_address(AF_INET6, text);
}

/* --- mail and web addresses -------------------------------------------------------------------------- */

bool format_is_email(struct str text)
{
    size_t     at = str_find(text, '@');
    struct str domain;

    if (text.len > EMAIL_BYTES_MAX || at == text.len || at > LOCAL_PART_BYTES_MAX)
        return false;
    domain = str_from(text, at + 1);
    return pieces_are(until(text, at), is_atom) && str_find(domain, '.') < domain.len &&
           format_is_host(domain);
}

/* Only bytes of KIND and whole percent-escapes. */
static bool are_or_escaped(struct str text, enum kind kind)
{
    for (size_t i = 0; i < text.len; i++) {
        if (is(text.at[i], kind))
            continue;
        if (text.at[i] != '%' || text.len - i < 3 || !is(text.at[i + 1], HEX) ||
            !is(text.at[i + 2], HEX))
            return false;
        i += 2;
    }
    return true;
}

static bool is_url_host(struct str host)
{
    if (host.len && host.at[0] == '[')
        return host.at[host.len - 1] == ']' &&
               format_is_ipv6(str_make(host.at + 1, host.len < 2 ? 0 : host.len - 2));
    return host.len && host.len <= HOST_BYTES_MAX && are_or_escaped(host, NAME);
}

static bool is_port(struct str port)
{
    uint64_t number;

    return !port.len || (port.len <= PORT_DIGITS_MAX && str_to_u64(port, PORT_MAX, &number));
}

/* RFC 3986, 3.2: [ userinfo "@" ] host [ ":" port ]. */
static bool is_authority(struct str text)
{
    size_t at = str_find(text, '@'), bracket, colon;

    if (at < text.len) {
        if (!are_or_escaped(until(text, at), USER))
            return false;
        text = str_from(text, at + 1);
    }
    bracket = str_find(text, ']');
    colon   = bracket < text.len ? bracket : 0;
    colon += str_find(str_from(text, colon), ':');
    return is_url_host(until(text, colon)) &&
           (colon == text.len || is_port(str_from(text, colon + 1)));
}

/* "http://" or "https://" at the beginning of TEXT: its length, else 0. */
static size_t scheme_len(struct str text)
{
    static const struct str SCHEMES[] = { STR_INIT("http://"), STR_INIT("https://") };

    for (unsigned i = 0; i < 2; i++)
        if (text.len >= SCHEMES[i].len && str_is_nocase(until(text, SCHEMES[i].len), SCHEMES[i]))
            return SCHEMES[i].len;
    return 0;
}

static size_t authority_len(struct str text)
{
    size_t end = 0;

    while (end < text.len && text.at[end] != '/' && text.at[end] != '?' && text.at[end] != '#')
        end++;
    return end;
}

bool format_is_url(struct str text)
{
    size_t     scheme = scheme_len(text), end, hash;
    struct str rest;

    if (!scheme || text.len > URL_BYTES_MAX)
        return false;
    rest = str_from(text, scheme);
    end  = authority_len(rest);
    if (!is_authority(until(rest, end)))
        return false;
    rest = str_from(rest, end);
    hash = str_find(rest, '#');
    return are_or_escaped(until(rest, hash), TAIL) &&
           (hash == rest.len || are_or_escaped(str_from(rest, hash + 1), TAIL));
}

/* --- dates and times ------------------------------------------------------------------------------------ */

/* The number that two digits make, or -1. */
static int two_digits(const char *at)
{
    return is(at[0], DIGIT) && is(at[1], DIGIT) ? (at[0] - '0') * 10 + at[1] - '0' : -1;
}

static int days_in(int year, int month)
{
    static const int DAYS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool             leap   = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && leap ? 29 : DAYS[month - 1];
}

bool format_is_date(struct str text)
{
    int century, year, month, day;

    if (text.len != DATE_LEN || text.at[4] != '-' || text.at[7] != '-')
        return false;
    century = two_digits(text.at);
    year    = two_digits(text.at + 2);
    month   = two_digits(text.at + 5);
    day     = two_digits(text.at + 8);
    return century >= 0 && year >= 0 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days_in(century * 100 + year, month);
}

/* Minutes that the time-offset is ahead of UTC. */
static bool read_offset(struct str text, int *minutes)
{
    int hour, minute;

    *minutes = 0;
    if (text.len == 1)
        return text.at[0] == 'Z' || text.at[0] == 'z';
    if (text.len != 6 || (text.at[0] != '+' && text.at[0] != '-') || text.at[3] != ':')
        return false;
    hour     = two_digits(text.at + 1);
    minute   = two_digits(text.at + 4);
    *minutes = (text.at[0] == '-' ? -1 : 1) * (hour * 60 + minute);
    return hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59;
}

/* Behind ".123", if that stands there. */
static struct str skip_fraction(struct str text)
{
    size_t end = 1;

    if (text.len < 2 || text.at[0] != '.')
        return text;
    while (end < text.len && is(text.at[end], DIGIT))
        end++;
    return end > 1 ? str_from(text, end) : text;
}

bool format_is_time(struct str text)
{
    int hour, minute, second, ahead;

    if (text.len < 9 || text.len > TIME_BYTES_MAX || text.at[2] != ':' || text.at[5] != ':')
        return false;
    hour   = two_digits(text.at);
    minute = two_digits(text.at + 3);
    second = two_digits(text.at + 6);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 ||
        !read_offset(skip_fraction(str_from(text, 8)), &ahead))
        return false;
    return second < 60 ||
           (hour * 60 + minute - ahead + DAY_MINUTES) % DAY_MINUTES == DAY_MINUTES - 1;
}

bool format_is_datetime(struct str text)
{
    return text.len > DATE_LEN && (text.at[DATE_LEN] == 'T' || text.at[DATE_LEN] == 't') &&
           format_is_date(until(text, DATE_LEN)) && format_is_time(str_from(text, DATE_LEN + 1));
}

/* --- identifiers and encodings -------------------------------------------------------------------------- */

bool format_is_uuid(struct str text)
{
    if (text.len != UUID_TEXT_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_hyphen ? text.at[i] != '-' : !is(text.at[i], HEX))
            return false;
    }
    return true;
}

bool format_is_slug(struct str text)
{
    return text.len && are(text, SLUG);
}

bool format_is_hex(struct str text)
{
    return text.len && are(text, HEX);
}

bool format_is_base64(struct str text)
{
    size_t pad = str_find(text, '=');

    if (text.len % 4 || text.len - pad > 2)
        return false;
    if (text.len - pad == 2 && text.at[text.len - 1] != '=')
        return false;
    return are(until(text, pad), BASE64);
}
