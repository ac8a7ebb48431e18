/* base/number.h - numbers as JSON writes them (RFC 8259, section 6), exactly and in no locale.
 *
 * Writing gives the shortest digits that read back as the same double, and of these the closest
 * to it. Reading rounds to the nearest double, ties to even, however many digits there are. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stddef.h>

#include "base/str.h"

enum {
    NUMBER_TEXT_MAX = 32, /* bytes that number_format() writes at most */
};

/* Up to this magnitude every integer is a double. */
#define NUMBER_INTEGER_MAX (UINT64_C(1) << 53)

/* Writes VALUE, which is finite, to OUT; returns the length (no NUL). Plain digits for magnitudes
 * from 1e-6 to NUMBER_INTEGER_MAX, else with an exponent ("1e-7", "1.5e+21"): what is written here
 * never reads as NUMBER_BIG. */
size_t number_format(char *out, double value);
/* The same for an integer. */
size_t number_format_u64(char *out, uint64_t value);

enum number_kind {
    NUMBER_NONE,    /* no number: `len` tells where it went wrong */
    NUMBER_REAL,    /* has a fraction or an exponent */
    NUMBER_INTEGER, /* within NUMBER_INTEGER_MAX */
    NUMBER_BIG,     /* an integer beyond it: `value` is only near */
    NUMBER_HUGE,    /* has a fraction or an exponent, and no double is large enough */
};

struct number {
    enum number_kind kind;
    size_t           len; /* bytes of the text that belong to it */
    double           value;
};

/* Reads the number at TEXT's front: an optional "-", digits without a leading zero, and perhaps a
 * fraction and an exponent. What follows is the caller's to judge. */
void number_read(struct str text, struct number *number);

#endif
