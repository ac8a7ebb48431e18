/* base/clock.h - what time it is, and how it is written: HTTP dates and ISO 8601.
 *
 * Time limits count on the monotonic clock, dates on the wall clock. A call costs about 22 ns; on
 * the request path take loop_now_ns(), which is read once a turn. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
    NS_PER_US = 1000,
    NS_PER_MS = 1000000,
    NS_PER_S  = 1000000000,

    CLOCK_HTTP_DATE_LEN = 29, /* "Sun, 06 Nov 1994 08:49:37 GMT" */
    CLOCK_ISO_LEN       = 24, /* "1994-11-06T08:49:37.123Z" */
};

/* Nanoseconds since some moment before the start; never goes back. */
uint64_t clock_mono_ns(void);

/* Milliseconds since 1970, UTC. */
int64_t clock_wall_ms(void);

/* CPU time that the calling thread has used, in ns. 380 ns a call: not on the request path. */
uint64_t clock_thread_cpu_ns(void);

/* Writes CLOCK_HTTP_DATE_LEN characters, no NUL (RFC 9110, 5.6.7: IMF-fixdate). Years 1 to 9999;
 * a time outside them is written as the nearest inside. */
void clock_http_date(char *to, int64_t seconds);

/* All three forms of RFC 9110, 5.6.7; a two-digit year lies at most 50 years ahead. False: none. */
bool clock_parse_http_date(struct str text, int64_t *seconds);

/* Writes CLOCK_ISO_LEN characters, no NUL. */
void clock_iso(char *to, int64_t wall_ms);

/* The Date field's text, made once a second. One for each thread that answers. */
struct clock_date {
    int64_t second; /* that `text` was made for */
    char    text[CLOCK_HTTP_DATE_LEN];
};

void clock_date_init(struct clock_date *date);
/* Now; valid until the next call. */
struct str clock_date_now(struct clock_date *date);

#endif
