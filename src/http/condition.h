/* http/condition.h - conditional requests (RFC 9110, 13): what the validators of an answer make of
 * what the client has asked. */
#ifndef HTTP_CONDITION_H
#define HTTP_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct request;

#define CONDITION_NO_TIME INT64_MIN

struct condition_validators {
    struct str etag;          /* with its quotes, W/ before a weak one; empty: none */
    int64_t    last_modified; /* seconds since 1970, or CONDITION_NO_TIME */
};

/* 304 or 412 in place of a 2xx answer to REQUEST, or 0: the answer stands. In the order of RFC 9110,
 * 13.2.2; a safe method is assumed where 304 is given (GET and HEAD). */
unsigned condition_status(const struct request              *request,
                          const struct condition_validators *validators);

/* Whether TAG stands in LIST ("*" or tags with commas between). Weak comparison lets W/"a" be "a"
 * (RFC 9110, 8.8.3.2). */
bool condition_has_tag(struct str list, struct str tag, bool weakly);

#endif
