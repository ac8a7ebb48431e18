/* Range against a parser that is slow and simple: it marks each byte that is asked for in a body small
 * enough to have a mark for every byte; ranges that touch are one. The first byte of the input chooses
 * the body's size. links: srv_http */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/range.h"

enum { SIZE_MAX_MARKED = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

/* What RFC 9110, 14.1.1 makes of one element. Positions beyond UINT64_MAX are that. */
struct asked {
    bool     sound, has_first, has_last;
    uint64_t first, last;
};

static bool read_digits(const char **at, const char *end, uint64_t *number)
{
    const char *from = *at;

    for (*number = 0; *at < end && isdigit((unsigned char)**at); ++*at) {
        unsigned __int128 next = (unsigned __int128)*number * 10 + (unsigned)(**at - '0');

        *number = next > UINT64_MAX ? UINT64_MAX : (uint64_t)next;
    }
    return *at > from;
}

static struct asked read_element(const char *at, const char *end, uint64_t size)
{
    struct asked asked = { .sound = false };

    asked.has_first = read_digits(&at, end, &asked.first);
    if (at == end || *at++ != '-')
        return asked;
    asked.has_last = read_digits(&at, end, &asked.last);
    if (at != end)
        return asked;
    if (asked.has_first)
        asked.sound = !asked.has_last || asked.last >= asked.first;
    else /* of nothing, the last bytes are all of it, which no Content-Range can say */
        asked.sound = asked.has_last && (size || !asked.last);
    return asked;
}

struct naive {
    enum range_verdict verdict;
    unsigned           elements;
    unsigned marks[SIZE_MAX_MARKED]; /* which element, from 1 on, asks first for this byte */
};

static void mark(struct naive *naive, const struct asked *asked, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        bool wanted = asked->has_first ? i >= asked->first && (!asked->has_last || i <= asked->last)
                                       : size - i <= asked->last;

        if (wanted && !naive->marks[i])
            naive->marks[i] = naive->elements;
    }
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static void read_elements(struct naive *naive, const char *at, const char *end, uint64_t size)
{
    while (at < end) {
        const char  *comma = memchr(at, ',', (size_t)(end - at));
        const char  *last  = comma ? comma : end;
        struct asked asked;

        for (; at < last && is_blank(*at); at++)
            continue;
        for (const char *next = last; at < last && is_blank(last[-1]); next = last)
            last = next - 1;
        if (at < last) {
            asked = read_element(at, last, size);
            if (!asked.sound || ++naive->elements > RANGE_COUNT_MAX) {
                naive->verdict = RANGE_IGNORE;
                return;
            }
            mark(naive, &asked, size);
        }
        at = comma ? comma + 1 : end;
    }
}

static void read_naively(struct naive *naive, const char *text, size_t len, uint64_t size)
{
    memset(naive, 0, sizeof(*naive));
    naive->verdict = RANGE_IGNORE;
    if (len < 6 || strncasecmp(text, "bytes=", 6) != 0)
        return;
    naive->verdict = RANGE_UNSATISFIABLE;
    read_elements(naive, text + 6, text + len, size);
    if (!naive->elements)
        naive->verdict = RANGE_IGNORE;
    for (uint64_t i = 0; i < size && naive->verdict != RANGE_IGNORE; i++)
        if (naive->marks[i])
            naive->verdict = RANGE_PARTIAL;
}

/* The run of marked bytes that begins at FROM: its last byte, and which element asked for one of them
 * first. */
static uint64_t end_run(const struct naive *naive, uint64_t from, uint64_t size, unsigned *first)
{
    uint64_t last = from;

    *first = naive->marks[from];
    while (last + 1 < size && naive->marks[last + 1]) {
        last++;
        if (naive->marks[last] < *first)
            *first = naive->marks[last];
    }
    return last;
}

/* The runs of marked bytes are the ranges, in the order in which they were asked for. */
static void check_marked(struct str value, uint64_t size)
{
    struct range ranges[RANGE_COUNT_MAX];
    struct naive naive;
    unsigned     count = 0, runs = 0, asked[RANGE_COUNT_MAX];

    read_naively(&naive, value.at, value.len, size);
    must(range_parse(value, size, ranges, &count) == naive.verdict);
    if (naive.verdict != RANGE_PARTIAL)
        return;
    for (unsigned i = 0; i < count; i++) {
        uint64_t from = ranges[i].first;

        must(from < size && naive.marks[from] && (!from || !naive.marks[from - 1]));
        must(ranges[i].last == end_run(&naive, from, size, &asked[i]));
        must(!i || asked[i - 1] < asked[i]);
    }
    for (uint64_t i = 0; i < size; i++)
        runs += naive.marks[i] && (!i || !naive.marks[i - 1]);
    must(count == runs);
}

/* Of a body too large for marks: all lies inside, nothing is asked for twice. */
static void check_bounds(struct str value, uint64_t size)
{
    struct range ranges[RANGE_COUNT_MAX];
    unsigned     count;
    uint64_t     total = 0;

    if (range_parse(value, size, ranges, &count) != RANGE_PARTIAL)
        return;
    must(count > 0 && count <= RANGE_COUNT_MAX);
    for (unsigned i = 0; i < count; i++) {
        uint64_t wanted = ranges[i].last - ranges[i].first + 1;

        must(ranges[i].first <= ranges[i].last && ranges[i].last < size);
        must(wanted <= size - total);
        total += wanted;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str value;

    if (!len)
        return 0;
    value = str_make((const char *)bytes + 1, len - 1);
    check_marked(value, bytes[0] % (SIZE_MAX_MARKED + 1));
    check_bounds(value, (uint64_t)bytes[0] << 32);
    check_bounds(value, UINT64_MAX);
    return 0;
}
