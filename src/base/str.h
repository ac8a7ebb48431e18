/* base/str.h - a span of bytes that somebody else owns. Never assumed to end in NUL. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *at;
    size_t      len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    } /* for constant tables */
#define STR_NONE   ((struct str){ NULL, 0 })
#define STR_ARG(s) (int)(s).len, (s).at /* for "%.*s" */

static inline struct str str_make(const char *at, size_t len)
{
    return (struct str){ at, len };
}

static inline struct str str_of(const char *c_string)
{
    return (struct str){ c_string, strlen(c_string) };
}

static inline bool str_is(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* ASCII letters of either case are the same, whatever the locale. */
bool str_is_nocase(struct str a, struct str b);

static inline bool str_starts_with(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_is(str_make(s.at, prefix.len), prefix);
}

static inline bool str_ends_with(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_is(str_make(s.at + s.len - suffix.len, suffix.len), suffix);
}

/* What lies from FROM (at most s.len) to the end. Adding even 0 to NULL is undefined in C11. */
static inline struct str str_from(struct str s, size_t from)
{
    return from ? (struct str){ s.at + from, s.len - from } : s;
}

/* Position of the first BYTE, or s.len. */
static inline size_t str_find(struct str s, char byte)
{
    const char *hit = s.len ? memchr(s.at, byte, s.len) : NULL;

    return hit ? (size_t)(hit - s.at) : s.len;
}

/* Without spaces and tabs at both ends (RFC 9110, 5.6.3: OWS). */
struct str str_trim(struct str s);

/* Cuts the first element of a list off *REST at SEPARATOR, trimmed. False when *REST is empty. */
bool str_next(struct str *rest, char separator, struct str *element);

/* Digits only, no sign, no overflow beyond MAX: true and *OUT set. */
bool str_to_u64(struct str s, uint64_t max, uint64_t *out);

#endif
