/* Writing is Raffaello Giulietti's Schubfach ("The Schubfach way to render doubles", 2020). Reading
 * bounds the exact product of digits and power of ten from both sides and asks strtod() only where
 * the two bounds round to different doubles. */
#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/number_powers.h"

typedef unsigned __int128 u128;

enum {
    FRACTION_BITS = 52,
    EXPONENT_BIAS = 1075,  /* of a significand read as an integer */
    EXPONENT_MAX  = 0x7ff, /* infinities and NaN */
};

/* floor(log2(10^e)), right for |e| <= 1233. */
static int log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

static const struct number_power *power(int e)
{
    assert(e >= NUMBER_POWER_MIN && e <= NUMBER_POWER_MAX);
    return &NUMBER_POWERS[e - NUMBER_POWER_MIN];
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* --- integers -------------------------------------------------------------------------------- */

static const char PAIRS[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static unsigned count_digits(uint64_t value)
{
    unsigned count = 1;

    for (; value >= 10000; value /= 10000)
        count += 4;
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

size_t number_format_u64(char *out, uint64_t value)
{
    unsigned len = count_digits(value);
    char    *at  = out + len;

    for (; value >= 100; value /= 100)
        memcpy(at -= 2, &PAIRS[value % 100 * 2], 2);
    if (value >= 10)
        memcpy(out, &PAIRS[value * 2], 2);
    else
        *out = (char)('0' + value);
    return len;
}

/* --- shortest digits --------------------------------------------------------------------------- */

/* VALUE = digits * 10^exponent, digits without zeros at their end. */
struct decimal {
    uint64_t digits;
    int      exponent;
};

/* floor(g * cp / 2^128), its last bit set when anything was cut off ("round to odd"). */
static uint64_t round_to_odd(const struct number_power *g, uint64_t cp)
{
    u128 low  = (u128)g->low * cp;
    u128 high = (u128)g->high * cp + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The decimal in the rounding interval of c * 2^q with the fewest digits, and of those the closest.
 * All four candidates are scaled by four, so that the interval's ends are integers too. */
static struct decimal shortest(uint64_t c, int q, bool lower_is_closer)
{
    int      is_odd = (int)(c & 1); /* ends of an even one round to it, so they belong to it */
    int      k = (q * 1262611 - (lower_is_closer ? 524031 : 0)) >> 22; /* floor(log10(interval)) */
    int      h = q + log2_pow10(-k) + 1;
    uint64_t lower = round_to_odd(power(-k), (4 * c - 2 + lower_is_closer) << h) + is_odd;
    uint64_t value = round_to_odd(power(-k), 4 * c << h);
    uint64_t upper = round_to_odd(power(-k), (4 * c + 2) << h) - is_odd;
    uint64_t s     = value / 4;

    if (s >= 10) { /* one digit less? */
        uint64_t tens     = s / 10;
        bool     floor_in = lower <= 40 * tens, ceil_in = 40 * tens + 40 <= upper;

        if (floor_in != ceil_in)
            return (struct decimal){ tens + ceil_in, k + 1 };
    }

    bool     floor_in = lower <= 4 * s, ceil_in = 4 * s + 4 <= upper;
    uint64_t middle = 4 * s + 2;

    if (floor_in != ceil_in)
        return (struct decimal){ s + ceil_in, k };
    return (struct decimal){ s + (value > middle || (value == middle && (s & 1))), k };
}

static struct decimal decimal_of(double value)
{
    uint64_t       bits     = bits_of(value);
    uint64_t       fraction = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
    int            exponent = (int)(bits >> FRACTION_BITS) & EXPONENT_MAX;
    struct decimal decimal;

    if (exponent)
        decimal = shortest(fraction | UINT64_C(1) << FRACTION_BITS, exponent - EXPONENT_BIAS,
                           fraction == 0 && exponent > 1);
    else
        decimal = shortest(fraction, 1 - EXPONENT_BIAS, false);
    for (; decimal.digits % 10 == 0; decimal.digits /= 10)
        decimal.exponent++;
    return decimal;
}

/* --- writing --------------------------------------------------------------------------------- */

static char *write_digits(char *at, const char *digits, int len)
{
    memcpy(at, digits, (size_t)len);
    return at + len;
}

/* 123e-1 -> 12.3; 123e-5 -> 0.00123. POINT digits stand before the point. */
static char *write_fraction(char *at, const char *digits, int len, int point)
{
    if (point > 0) {
        at    = write_digits(at, digits, point);
        *at++ = '.';
        return write_digits(at, digits + point, len - point);
    }
    at = write_digits(at, "0.00000", 2 - point);
    return write_digits(at, digits, len);
}

/* 123e20 -> 1.23e+22 */
static char *write_exponent(char *at, const char *digits, int len, int exponent)
{
    *at++ = digits[0];
    if (len > 1) {
        *at++ = '.';
        at    = write_digits(at, digits + 1, len - 1);
    }
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    return at + number_format_u64(at, (uint64_t)abs(exponent));
}

/* An integer gets here only beyond NUMBER_INTEGER_MAX. Without an exponent it would be
 * NUMBER_BIG. */
static char *write_real(char *at, double value)
{
    struct decimal decimal = decimal_of(value);
    char           digits[20];
    int            len   = (int)number_format_u64(digits, decimal.digits);
    int            point = len + decimal.exponent; /* digits before the decimal point */

    if (point < -5 || decimal.exponent >= 0)
        return write_exponent(at, digits, len, point - 1);
    return write_fraction(at, digits, len, point);
}

size_t number_format(char *out, double value)
{
    char  *at        = out;
    double magnitude = fabs(value);

    assert(isfinite(value));
    if (bits_of(value) >> 63)
        *at++ = '-'; /* of zero too: it reads back as it was */
    if (magnitude <= (double)NUMBER_INTEGER_MAX && (double)(uint64_t)magnitude == magnitude)
        return (size_t)(at - out) + number_format_u64(at, (uint64_t)magnitude);
    return (size_t)(write_real(at, magnitude) - out);
}

/* --- reading: the grammar ---------------------------------------------------------------------- */

enum {
    KEPT_DIGITS    = 19,                /* always fit 64 bits */
    EXPONENT_BOUND = 100 * 1000 * 1000, /* more than any text has digits to make up for */
};

struct scan {
    const char *at, *end;
    uint64_t    digits; /* the first KEPT_DIGITS significant ones */
    int         count;  /* of significant digits, all of them */
    int         exponent;
    bool        is_cut; /* digits were left out that may not be zero */
};

static bool is_digit(const struct scan *s)
{
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static bool skip(struct scan *s, char byte)
{
    if (s->at == s->end || *s->at != byte)
        return false;
    s->at++;
    return true;
}

/* STEP is what each digit does to the exponent if it is kept: 0, or -1 behind the point. */
static bool scan_digits(struct scan *s, int step)
{
    const char *start = s->at;

    for (; is_digit(s); s->at++) {
        unsigned digit = (unsigned)(*s->at - '0');

        s->count += s->count > 0 || digit;
        if (s->count <= KEPT_DIGITS) {
            s->digits = s->digits * 10 + digit;
            s->exponent += step;
        } else {
            s->is_cut |= digit != 0;
            s->exponent += step + 1;
        }
    }
    return s->at > start;
}

static bool scan_exponent(struct scan *s)
{
    bool        is_negative;
    int         exponent = 0;
    const char *start;

    is_negative = skip(s, '-');
    if (!is_negative)
        skip(s, '+');
    for (start = s->at; is_digit(s); s->at++)
        if (exponent < EXPONENT_BOUND)
            exponent = exponent * 10 + (*s->at - '0');
    s->exponent += is_negative ? -exponent : exponent;
    return s->at > start;
}

/* The digits before the point. */
static bool scan_whole(struct scan *s)
{
    if (skip(s, '0'))
        return !is_digit(s);
    return scan_digits(s, 0);
}

static enum number_kind scan_number(struct scan *s)
{
    enum number_kind kind = NUMBER_INTEGER;

    if (!scan_whole(s))
        return NUMBER_NONE;
    if (skip(s, '.')) {
        kind = NUMBER_REAL;
        if (!scan_digits(s, -1))
            return NUMBER_NONE;
    }
    if (skip(s, 'e') || skip(s, 'E')) {
        kind = NUMBER_REAL;
        if (!scan_exponent(s))
            return NUMBER_NONE;
    }
    return kind;
}

/* --- reading: rounding ------------------------------------------------------------------------- */

/* An unsigned integer of 192 bits with one of its two highest bits set. */
struct wide {
    uint64_t high, middle, low;
};

/* The double nearest to WIDE * 2^exponent; negative where it would not be a normal one. */
static double round_wide(struct wide wide, int exponent)
{
    int      shift  = wide.high >> 63 ? 11 : 10;
    uint64_t half   = UINT64_C(1) << (shift - 1);
    uint64_t c      = wide.high >> shift;
    uint64_t rest   = wide.high & (2 * half - 1);
    bool     is_tie = rest == half && !wide.middle && !wide.low;
    uint64_t bits;
    double   value;

    if (is_tie ? (c & 1) : rest >= half)
        c++;
    if (c >> 53) {
        c >>= 1;
        exponent++;
    }
    exponent += shift + 128 + EXPONENT_BIAS;
    if (exponent < 1 || exponent >= EXPONENT_MAX)
        return -1;
    bits = (uint64_t)exponent << FRACTION_BITS | (c & ((UINT64_C(1) << FRACTION_BITS) - 1));
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static struct wide multiply(uint64_t w, const struct number_power *g)
{
    u128 low  = (u128)g->low * w;
    u128 high = (u128)g->high * w + (uint64_t)(low >> 64);

    return (struct wide){ (uint64_t)(high >> 64), (uint64_t)high, (uint64_t)low };
}

/* A - w: the powers are rounded up by less than one, so the true product lies above this. */
static struct wide lower_bound(struct wide a, uint64_t w)
{
    u128 high = ((u128)a.high << 64 | a.middle) - (a.low < w);

    return (struct wide){ (uint64_t)(high >> 64), (uint64_t)high, a.low - w };
}

/* A + g * 2^shift: what was cut off the digits is less than one of their last. False: carries out
 * of 192 bits. */
static bool upper_bound(struct wide *a, const struct number_power *g, int shift)
{
    u128 g_high = (u128)g->high << shift | (shift ? g->low >> (64 - shift) : 0);
    u128 low    = (u128)a->low + (g->low << shift);
    u128 high   = (u128)a->high << 64 | a->middle;
    u128 sum    = high + g_high + (uint64_t)(low >> 64);

    *a = (struct wide){ (uint64_t)(sum >> 64), (uint64_t)sum, (uint64_t)low };
    return sum >= high;
}

/* Negative when the two bounds disagree or the result is no normal double. */
static double round_by_bounds(const struct scan *s)
{
    int                        shift, exponent;
    uint64_t                   w;
    const struct number_power *g;
    struct wide                upper, lower;
    double                     value;

    if (s->exponent < NUMBER_POWER_MIN || s->exponent > NUMBER_POWER_MAX)
        return -1;
    shift    = __builtin_clzll(s->digits);
    w        = s->digits << shift;
    g        = power(s->exponent);
    exponent = log2_pow10(s->exponent) - 127 - shift;
    upper    = multiply(w, g);
    lower    = lower_bound(upper, w);
    if (s->is_cut && !upper_bound(&upper, g, shift))
        return -1;
    value = round_wide(upper, exponent);
    return value == round_wide(lower, exponent) ? value : -1;
}

/* By strtod(), without a point in the text, so that no locale matters. A double's exact decimal
 * has at most 768 digits: a "1" behind as many stands for all that follow. */
static double round_by_library(const char *at, const char *end, int exponent)
{
    enum { DIGITS = 770 };
    char text[DIGITS + 16];
    int  count       = 0;
    bool is_left_out = false;

    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.' || (count == 0 && *at == '0'))
            continue;
        if (count < DIGITS)
            text[count++] = *at;
        else
            is_left_out |= *at != '0';
    }
    /* EXPONENT belongs to the first KEPT_DIGITS. */
    exponent -= count - (count < KEPT_DIGITS ? count : KEPT_DIGITS);
    if (is_left_out) {
        text[count++] = '1';
        exponent--;
    }
    text[count++] = 'e';
    if (exponent < 0)
        text[count++] = '-';
    count += (int)number_format_u64(text + count, (uint64_t)abs(exponent));
    text[count] = '\0';
    return strtod(text, NULL);
}

static double round_digits(const struct scan *s, const char *start)
{
    static const double TENS[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    double              value;

    if (s->digits == 0)
        return 0;
    /* Both are doubles exactly, so one operation rounds once. */
    if (!s->is_cut && s->digits <= NUMBER_INTEGER_MAX) {
        if (s->exponent >= 0 && s->exponent < (int)ARRAY_LEN(TENS))
            return (double)s->digits * TENS[s->exponent];
        if (s->exponent < 0 && s->exponent > -(int)ARRAY_LEN(TENS))
            return (double)s->digits / TENS[-s->exponent];
    }
    value = round_by_bounds(s);
    return value >= 0 ? value : round_by_library(start, s->at, s->exponent);
}

void number_read(struct str text, struct number *number)
{
    struct scan s           = { .at = text.at, .end = text.at + text.len };
    bool        is_negative = skip(&s, '-');
    const char *start       = s.at;

    number->kind = scan_number(&s);
    number->len  = (size_t)(s.at - text.at);
    if (number->kind == NUMBER_NONE)
        return;
    number->value = round_digits(&s, start);
    if (number->kind == NUMBER_INTEGER && (s.exponent || s.digits > NUMBER_INTEGER_MAX))
        number->kind = NUMBER_BIG;
    else if (isinf(number->value))
        number->kind = NUMBER_HUGE;
    if (is_negative)
        number->value = -number->value;
}
