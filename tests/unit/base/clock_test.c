#include "base/clock.h"

#include <time.h>

#include "support/check.h"

static const char *http_date(int64_t seconds)
{
    static char text[CLOCK_HTTP_DATE_LEN + 1];

    clock_http_date(text, seconds);
    return text;
}

static const char *iso(int64_t ms)
{
    static char text[CLOCK_ISO_LEN + 1];

    clock_iso(text, ms);
    return text;
}

TEST(http_dates_are_imf_fixdates)
{
    CHECK_STR(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK_STR(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    CHECK_STR(http_date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
    CHECK_STR(http_date(951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
    CHECK_STR(http_date(4107542400), "Mon, 01 Mar 2100 00:00:00 GMT");
}

TEST(dates_outside_four_digit_years_stop_at_the_ends)
{
    CHECK_STR(http_date(INT64_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    CHECK_STR(http_date(INT64_MIN), "Mon, 01 Jan 0001 00:00:00 GMT");
}

TEST(iso_dates_have_milliseconds_before_1970_too)
{
    CHECK_STR(iso(784111777123), "1994-11-06T08:49:37.123Z");
    CHECK_STR(iso(-1), "1969-12-31T23:59:59.999Z");
    CHECK_STR(iso(-1000), "1969-12-31T23:59:59.000Z");
}

/* The C library's calendar is the witness. */
TEST(dates_agree_with_the_c_library_over_eight_centuries)
{
    for (int64_t t = -12000000000; t < 13000000000; t += 40000007) {
        char      want[64];
        time_t    when = (time_t)t;
        struct tm tm;
        int64_t   back;

        gmtime_r(&when, &tm);
        strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        CHECK_STR(http_date(t), want);
        CHECK(clock_parse_http_date(str_of(want), &back));
        CHECK_INT(back, t);
    }
}

/* RFC 9110, 5.6.7. */
TEST(all_three_forms_of_a_date_are_read)
{
    int64_t t = 0;

    CHECK(clock_parse_http_date(STR("Sun, 06 Nov 1994 08:49:37 GMT"), &t));
    CHECK_INT(t, 784111777);
    CHECK(clock_parse_http_date(STR("Sunday, 06-Nov-94 08:49:37 GMT"), &t));
    CHECK_INT(t, 784111777);
    CHECK(clock_parse_http_date(STR("Sun Nov  6 08:49:37 1994"), &t));
    CHECK_INT(t, 784111777);
    CHECK(clock_parse_http_date(STR("Wed Nov 16 08:49:37 1994"), &t));
    CHECK_INT(t, 784111777 + 10 * 86400);
}

TEST(two_digit_years_lie_within_fifty_years)
{
    int64_t now = clock_wall_ms() / 1000, t;

    for (int year = 0; year < 100; year++) {
        char text[40];

        snprintf(text, sizeof(text), "Monday, 01-Jan-%02d 00:00:00 GMT", year);
        CHECK(clock_parse_http_date(str_of(text), &t));
        CHECK(t < now + 51 * 31622400LL && t > now - 100 * 31622400LL);
    }
}

TEST(what_is_no_date_is_refused)
{
    static const char *const bad[] = {
        "",
        "0",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GXT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Xun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Thu, 31 Nov 1994 08:49:37 GMT",
        "Wed, 29 Feb 1995 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sunday, 06 Nov 94 08:49:37 GMT",
        "Sun Nov 06 08:49:37 94",
        "Sun, 06 Nov 1994 0x:49:37 GMT",
    };
    int64_t t = 99;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!clock_parse_http_date(str_of(bad[i]), &t));
    CHECK_INT(t, 99);
}

TEST(the_date_of_now_is_made_once_a_second)
{
    struct clock_date date;
    int64_t           t, now = clock_wall_ms() / 1000;

    clock_date_init(&date);
    CHECK(clock_parse_http_date(clock_date_now(&date), &t));
    CHECK(t >= now - 1 && t <= now + 2);
    date.text[0] = '?'; /* within one second the text is not touched again */
    if (clock_date_now(&date).at[0] != '?')
        CHECK(date.second > t);
}

TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t before = clock_mono_ns();

    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_mono_ns();

        CHECK(now >= before);
        before = now;
    }
    CHECK(clock_thread_cpu_ns() > 0);
}

int main(void)
{
    return check_run();
}
