/* The texts inside a request that applications ask for: paths, queries, forms, ranges.
 *
 * links: srv_http */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/form.h"
#include "http/mime.h"
#include "http/range.h"
#include "http/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { PAIRS_MAX = 50 };

/* A path that does not climb has no segment of dots, however often it is looked at. */
static void check_path(struct arena *arena, struct str path)
{
    struct str decoded = url_decode(arena, path), rest, segment;

    assert(decoded.len <= path.len);
    mime_of_path(decoded);
    if (url_path_climbs(path))
        return;
    for (rest = decoded; rest.len;) {
        size_t end = str_find(rest, '/');

        segment = str_make(rest.at, end);
        assert(!str_is(segment, STR(".")) && !str_is(segment, STR("..")));
        rest = end < rest.len ? str_from(rest, end + 1) : STR_NONE;
    }
}

static void check_pairs(struct arena *arena, struct str query)
{
    struct url_pair *pairs, *fields;
    unsigned         count = 0, field_count;
    int              rc    = url_parse_query(arena, query, PAIRS_MAX, &pairs, &count);
    size_t           total = 0;

    assert(rc == 0 || rc == ERR_TOO_LARGE);
    for (unsigned i = 0; i < count; i++)
        total += pairs[i].name.len + pairs[i].value.len;
    assert(total <= query.len);
    rc = form_parse(arena, query, FORM_UTF8, PAIRS_MAX, &fields, &field_count);
    assert(rc != 0 || field_count == count);
    form_parse(arena, query, FORM_LATIN1, PAIRS_MAX, &fields, &field_count);
}

static void check_ranges(struct str value, uint64_t size)
{
    struct range ranges[RANGE_COUNT_MAX];
    unsigned     count;
    uint64_t     total = 0;

    if (range_parse(value, size, ranges, &count) != RANGE_PARTIAL)
        return;
    assert(count > 0 && count <= RANGE_COUNT_MAX);
    for (unsigned i = 0; i < count; i++) {
        assert(ranges[i].first <= ranges[i].last && ranges[i].last < size);
        total += ranges[i].last - ranges[i].first + 1;
    }
    assert(total <= size); /* they do not overlap, so they cannot ask for more than there is */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct arena_pool pool = { .free_max = 4 };
    struct arena             arena;
    struct str               text = str_make((const char *)bytes, len);

    arena_init(&arena, &pool);
    check_path(&arena, text);
    check_pairs(&arena, text);
    check_ranges(text, 0);
    check_ranges(text, 10);
    check_ranges(text, UINT64_MAX);
    arena_reset(&arena);
    return 0;
}
