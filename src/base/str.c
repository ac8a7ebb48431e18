#include "base/str.h"

static char ascii_lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter | 32) : letter;
}

/* Not strncasecmp(): it stops at a NUL and asks the locale. */
bool str_is_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (ascii_lower(a.at[i]) != ascii_lower(b.at[i]))
            return false;
    return true;
}

struct str str_trim(struct str s)
{
    while (s.len && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool str_next(struct str *rest, char separator, struct str *element)
{
    size_t end;

    if (!rest->len)
        return false;
    end      = str_find(*rest, separator);
    *element = str_trim(str_make(rest->at, end));
    *rest    = end < rest->len ? str_from(*rest, end + 1) : STR_NONE;
    return true;
}

bool str_to_u64(struct str s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (!s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.at[i] - '0';

        if (digit > 9 || digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}
