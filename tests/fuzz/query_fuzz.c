/* Queries against naive_query.h: the same pairs, in order, and an error exactly where there are more
 * than may be. What is percent-encoded decodes to itself. links: srv_http */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "fuzz/naive_query.h"
#include "http/url.h"

enum { PAIRS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

static unsigned count_pairs(struct str query)
{
    struct str name, value;
    unsigned   count = 0;

    for (size_t at = 0; naive_pair(query, &at, &name, &value);)
        count++;
    return count;
}

static void check_pairs(struct arena *arena, struct str query, unsigned pairs_max)
{
    struct url_pair *pairs;
    unsigned         count, wanted = count_pairs(query);
    size_t           at    = 0;
    bool             sound = true;

    if (url_parse_query(arena, query, pairs_max, &pairs, &count) != 0) {
        must(wanted > pairs_max);
        return;
    }
    must(count == wanted && count <= pairs_max);
    for (unsigned i = 0; i < count; i++) {
        struct str name, value;

        must(naive_pair(query, &at, &name, &value));
        must(naive_agrees(pairs[i].name, name, &sound));
        must(naive_agrees(pairs[i].value, value, &sound));
    }
    must(sound || !url_escapes_are_sound(query));
}

static void check_round_trip(struct arena *arena, struct str text)
{
    struct buf encoded;

    buf_init(&encoded, SIZE_MAX);
    codec_percent(&encoded, text, CODEC_KEEP_UNRESERVED);
    must(url_escapes_are_sound(buf_str(&encoded)));
    must(str_is(url_decode_form(arena, buf_str(&encoded)), text));
    must(str_is(url_decode(arena, buf_str(&encoded)), text));
    buf_fini(&encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct arena_pool pool = { .free_max = 4 };
    struct arena             arena;
    struct str               text = str_make((const char *)bytes, len);

    arena_init(&arena, &pool);
    check_pairs(&arena, text, PAIRS_MAX);
    check_pairs(&arena, text, (unsigned)len);
    check_round_trip(&arena, text);
    arena_reset(&arena);
    return 0;
}
