#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number_powers.h"
#include "support/check.h"

/* --- the table: made again with integers of any size ----------------------------------------- */

enum { BIG_WORDS = 40 }; /* 1,280 bits: 10^324 has 1,077 */

struct big {
    uint32_t word[BIG_WORDS]; /* lowest first */
};

static void big_multiply(struct big *b, uint32_t by)
{
    uint64_t carry = 0;

    for (int i = 0; i < BIG_WORDS; i++) {
        carry += (uint64_t)b->word[i] * by;
        b->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    CHECK(carry == 0);
}

/* Rounds down; true: nothing was left. */
static bool big_divide(struct big *b, uint32_t by)
{
    uint64_t rest = 0;

    for (int i = BIG_WORDS; i-- > 0;) {
        rest       = rest << 32 | b->word[i];
        b->word[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    return rest == 0;
}

static bool big_bit(const struct big *b, int bit)
{
    return b->word[bit / 32] >> bit % 32 & 1;
}

/* The 128 bits from B's highest one down, plus one if anything was left below or before. */
static struct number_power top_bits(const struct big *b, bool is_exact)
{
    struct number_power top = { 0, 0 };
    int                 bit = BIG_WORDS * 32 - 1;

    while (!big_bit(b, bit))
        bit--;
    for (int i = 0; i < 128; i++, bit--) {
        top.high = top.high << 1 | top.low >> 63;
        top.low  = top.low << 1 | (bit >= 0 && big_bit(b, bit));
    }
    for (; bit >= 0; bit--)
        is_exact &= !big_bit(b, bit);
    if (!is_exact && ++top.low == 0)
        top.high++;
    return top;
}

TEST(every_power_of_ten_is_the_exact_one_rounded_up)
{
    for (int e = NUMBER_POWER_MIN; e <= NUMBER_POWER_MAX; e++) {
        struct big          big      = { { 0 } };
        bool                is_exact = true;
        struct number_power want;

        if (e >= 0) {
            big.word[0] = 1;
            for (int i = 0; i < e; i++)
                big_multiply(&big, 10);
        } else {
            big.word[BIG_WORDS - 1] = 1u << 31;
            for (int i = 0; i > e; i--)
                is_exact &= big_divide(&big, 10);
        }
        want = top_bits(&big, is_exact);
        CHECK(NUMBER_POWERS[e - NUMBER_POWER_MIN].high == want.high);
        CHECK(NUMBER_POWERS[e - NUMBER_POWER_MIN].low == want.low);
    }
}

/* --- writing --------------------------------------------------------------------------------- */

static const char *format(double value)
{
    static char text[NUMBER_TEXT_MAX + 1];

    text[number_format(text, value)] = '\0';
    return text;
}

TEST(numbers_look_as_people_write_them)
{
    CHECK_STR(format(0), "0");
    CHECK_STR(format(-0.0), "-0");
    CHECK_STR(format(7), "7");
    CHECK_STR(format(-10), "-10");
    CHECK_STR(format(9007199254740992), "9007199254740992");
    CHECK_STR(format(9007199254740994), "9.007199254740994e+15");
    CHECK_STR(format(0.1), "0.1");
    CHECK_STR(format(0.1 + 0.2), "0.30000000000000004");
    CHECK_STR(format(12.34), "12.34");
    CHECK_STR(format(-123.5), "-123.5");
    CHECK_STR(format(1e15 + 0.5), "1000000000000000.5");
    CHECK_STR(format(0.000001), "0.000001");
    CHECK_STR(format(0.0000012), "0.0000012");
    CHECK_STR(format(1e-7), "1e-7");
    CHECK_STR(format(1.5e-7), "1.5e-7");
    CHECK_STR(format(-123456789e12), "-1.23456789e+20");
    CHECK_STR(format(1e21), "1e+21");
    CHECK_STR(format(1.5e300), "1.5e+300");
    CHECK_STR(format(DBL_MAX), "1.7976931348623157e+308");
    CHECK_STR(format(DBL_MIN), "2.2250738585072014e-308");
    CHECK_STR(format(5e-324), "5e-324");
    CHECK_STR(format(9.5367431640625e-7), "9.5367431640625e-7");
    CHECK_STR(format(2e23), "2e+23"); /* not 1.9999999999999998e+23 */
}

TEST(integers_have_all_their_digits)
{
    char text[NUMBER_TEXT_MAX], want[NUMBER_TEXT_MAX];

    for (uint64_t value = 1; value; value = value > UINT64_MAX / 3 ? 0 : value * 3) {
        for (int step = -1; step <= 1; step++) {
            int len = snprintf(want, sizeof(want), "%llu", (unsigned long long)value + step);

            CHECK_MEM(text, number_format_u64(text, value + (uint64_t)step), want, (size_t)len);
        }
    }
    for (unsigned value = 0; value < 100000; value++) {
        int len = snprintf(want, sizeof(want), "%u", value);

        CHECK_MEM(text, number_format_u64(text, value), want, (size_t)len);
    }
    CHECK_MEM(text, number_format_u64(text, UINT64_MAX), "18446744073709551615", 20);
}

/* The significant digits of TEXT, without zeros at their ends. */
static size_t digits_of(const char *text, char *out)
{
    size_t len = 0;

    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (len || *text != '0'))
            out[len++] = *text;
    while (len && out[len - 1] == '0')
        len--;
    return len;
}

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The C library rounds correctly, so the first precision that reads back has the closest digits of
 * their number. At a power of two the doubles below lie closer together than those above, and one
 * digit less may read back although the library's rounding of it does not. */
static void check_shortest(double value)
{
    char        library[40], want[40], got[40];
    const char *text = format(value);
    size_t      len, got_len;

    CHECK(strtod(text, NULL) == value);
    for (int precision = 0;; precision++) {
        snprintf(library, sizeof(library), "%.*e", precision, value);
        if (strtod(library, NULL) == value)
            break;
    }
    len     = digits_of(library, want);
    got_len = digits_of(text, got);
    if (got_len >= len)
        CHECK_MEM(got, got_len, want, len);
}

static uint64_t next_random(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static unsigned random_rounds(void)
{
    const char *rounds = getenv("NUMBER_ROUNDS");

    return rounds ? (unsigned)strtoul(rounds, NULL, 10) : 30000;
}

TEST(random_doubles_get_the_shortest_digits)
{
    for (unsigned i = random_rounds(); i > 0; i--) {
        double value = double_of(next_random() & INT64_MAX);

        if (isfinite(value))
            check_shortest(value);
    }
}

TEST(random_fractions_get_the_shortest_digits)
{
    for (unsigned i = random_rounds(); i > 0; i--) {
        check_shortest((double)(next_random() >> 11) * 0x1p-53);
        check_shortest((double)(next_random() % 100000000) / 10000);
    }
}

TEST(powers_of_two_and_their_neighbours_get_the_shortest_digits)
{
    for (int e = -1074; e <= 1023; e++) {
        double value = ldexp(1, e);

        check_shortest(value);
        check_shortest(nextafter(value, INFINITY));
        check_shortest(nextafter(value, 0) > 0 ? nextafter(value, 0) : value);
    }
}

TEST(powers_of_ten_and_their_neighbours_get_the_shortest_digits)
{
    for (int e = -323; e <= 308; e++) {
        char   text[16];
        double value;

        snprintf(text, sizeof(text), "1e%d", e);
        value = strtod(text, NULL);
        check_shortest(value);
        check_shortest(nextafter(value, INFINITY));
        check_shortest(nextafter(value, 0) > 0 ? nextafter(value, 0) : value);
    }
}

/* --- reading --------------------------------------------------------------------------------- */

static struct number read_text(const char *text)
{
    struct number number;

    number_read(str_of(text), &number);
    return number;
}

static void check_reads(const char *text)
{
    struct number number = read_text(text);

    CHECK(number.kind != NUMBER_NONE);
    CHECK_INT(number.len, strlen(text));
    if (number.value != strtod(text, NULL))
        fprintf(stderr, "%s\n", text);
    CHECK(number.value == strtod(text, NULL));
}

TEST(the_kind_of_a_number_follows_from_its_text)
{
    CHECK_INT(read_text("0").kind, NUMBER_INTEGER);
    CHECK_INT(read_text("-12").kind, NUMBER_INTEGER);
    CHECK_INT(read_text("9007199254740992").kind, NUMBER_INTEGER);
    CHECK_INT(read_text("-9007199254740992").kind, NUMBER_INTEGER);
    CHECK_INT(read_text("9007199254740993").kind, NUMBER_BIG);
    CHECK_INT(read_text("10000000000000000000").kind, NUMBER_BIG);
    CHECK_INT(read_text("100000000000000000000000000").kind, NUMBER_BIG);
    CHECK_INT(read_text("1.0").kind, NUMBER_REAL);
    CHECK_INT(read_text("1e2").kind, NUMBER_REAL);
    CHECK_INT(read_text("1e308").kind, NUMBER_REAL);
    CHECK_INT(read_text("1e309").kind, NUMBER_HUGE);
    CHECK_INT(read_text("-1e999999999999").kind, NUMBER_HUGE);
    CHECK_INT(read_text("0e999999999999").kind, NUMBER_REAL);
    CHECK_INT(read_text("1e-999999999999").kind, NUMBER_REAL);
    CHECK(read_text("1e-999999999999").value == 0);
    CHECK(signbit(read_text("-0").value));
    CHECK(signbit(read_text("-0.0e-5").value));
}

TEST(what_is_no_number_tells_where)
{
    static const struct {
        const char *text;
        unsigned    len;
    } CASES[] = { { "", 0 },       { "-", 1 },  { "+1", 0 },   { ".5", 0 },      { "01", 1 },
                  { "-01", 2 },    { "1.", 2 }, { "1.e3", 2 }, { "1e", 2 },      { "1e+", 3 },
                  { "1.5e-x", 5 }, { "-a", 1 }, { "NaN", 0 },  { "Infinity", 0 } };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        CHECK_INT(read_text(CASES[i].text).kind, NUMBER_NONE);
        CHECK_INT(read_text(CASES[i].text).len, CASES[i].len);
    }
}

TEST(what_follows_a_number_is_not_read)
{
    CHECK_INT(read_text("12,").len, 2);
    CHECK_INT(read_text("1.5]").len, 3);
    CHECK_INT(read_text("0x10").len, 1);
    CHECK_INT(read_text("1e5e").len, 3);
    CHECK_INT(read_text("0.1.2").len, 3);
}

TEST(hard_numbers_are_read_to_the_nearest_double)
{
    static const char *const CASES[] = {
        "9007199254740993.0",
        "9007199254740993.00000000000000000000000000000000000001",
        "9007199254740992.99999999999999999999999999999999999999",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "2.2250738585072014e-308",
        "4.9406564584124654e-324",
        "2.4703282292062327208e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.79769313486231580793e308",
        "6929495644600919.5",
        "3.518437208883201171875e13",
        "62.5364939768271845828",
        "8.10109172351e-10",
        "1.50000000000000011102230246251565",
        "9007199254740991.4999999999999999999999999999999995",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
        "854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
        "342711559699508093042880e0",
        "0.1e1",
        "1e23",
        "8.5e22",
        "1234567890123456789012345678901234567890e-20",
        "0.00000000000000000000000000000000000000000000000000000000000000000000000000000000000123",
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
        check_reads(CASES[i]);
}

TEST(every_digit_counts)
{
    char          text[1400], longer[2400];
    double        low = 0x1.8p-1040, high;
    struct number number;
    int           len;

    high = nextafter(low, 1);
    len  = snprintf(text, sizeof(text), "%.1100f", low);
    CHECK(len > 1000);
    number_read(str_make(text, (size_t)len), &number);
    CHECK(number.value == low);
    snprintf(text, sizeof(text), "%.1100f", high);
    CHECK(read_text(text).value == high);

    /* 2^53 + 1, the tie between 2^53 and 2^53 + 2, behind 900 zeros. */
    len = snprintf(longer, sizeof(longer), "9007199254740993.%0900d", 0);
    CHECK(read_text(longer).value == 9007199254740992.0);
    longer[len - 1] = '1';
    CHECK(read_text(longer).value == 9007199254740994.0);
}

TEST(exponents_make_up_for_many_zeros)
{
    char *text = malloc(200100);
    int   len  = sprintf(text, "0.");

    CHECK(text != NULL);
    memset(text + len, '0', 200000);
    strcpy(text + len + 200000, "1e200001");
    CHECK(read_text(text).value == 1);
    free(text);
}

TEST(random_texts_are_read_to_the_nearest_double)
{
    char text[64];

    for (unsigned i = random_rounds(); i > 0; i--) {
        double value = double_of(next_random() & INT64_MAX);

        snprintf(text, sizeof(text), "%llu.%llue%d",
                 (unsigned long long)next_random() >> next_random() % 64,
                 (unsigned long long)next_random(), (int)(next_random() % 700) - 350);
        check_reads(text);
        snprintf(text, sizeof(text), "%llue%d",
                 (unsigned long long)next_random() >> next_random() % 64,
                 (int)(next_random() % 60) - 30);
        check_reads(text);
        if (!isfinite(value))
            continue;
        snprintf(text, sizeof(text), "%.*e", (int)(next_random() % 25), value);
        check_reads(text);
        CHECK(read_text(format(value)).value == value);
        CHECK(read_text(format(value)).kind != NUMBER_BIG);
    }
}

int main(void)
{
    return check_run();
}
