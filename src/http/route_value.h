/* http/route_value.h - a parameter of a pattern, and which values it takes. */
#ifndef HTTP_ROUTE_VALUE_H
#define HTTP_ROUTE_VALUE_H

#include <stdbool.h>

#include "base/str.h"

enum route_type {
    ROUTE_TEXT,   /* no type: not empty */
    ROUTE_INT,    /* -?digits, within 2^53; becomes a number */
    ROUTE_NUMBER, /* -?digits, then perhaps .digits, then perhaps an exponent; becomes a number */
    ROUTE_UUID,   /* 8-4-4-4-12 hex digits of either case */
    ROUTE_SLUG,   /* lower case letters and digits, in groups joined by one "-" */
    ROUTE_HEX,    /* hex digits of either case */
    ROUTE_DATE,   /* YYYY-MM-DD, a day of the calendar */
    ROUTE_WORDS,  /* one of the words in `rule`, parted by "|" */
    ROUTE_LUA,    /* `rule` is a Lua pattern for the whole value */
    ROUTE_REST,   /* a wildcard's */
};

struct route_param {
    struct str      name; /* "*" for a wildcard without a name */
    enum route_type type;
    struct str      rule;     /* WORDS and LUA: what stands in the angle brackets */
    bool            optional; /* the value may be missing: {NULL, 0} */
};

/* Whether VALUE fits a Lua pattern as a whole. Must not raise: false is the answer to an error. */
typedef bool (*route_accept_fn)(void *arg, struct str lua_pattern, struct str value);

/* How Lua patterns are asked; fn NULL: they accept nothing. */
struct route_accept {
    route_accept_fn fn;
    void           *arg;
};

bool route_value_fits(const struct route_param *param, struct str value,
                      struct route_accept accept);

#endif
