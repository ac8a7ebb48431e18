/* Paths: what does not climb out of a folder does not do so once decoded either. links: srv_http */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "http/mime.h"
#include "http/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct arena_pool pool = { .free_max = 4 };
    struct arena             arena;
    struct str               text = str_make((const char *)bytes, len);

    arena_init(&arena, &pool);
    check_path(&arena, text);
    arena_reset(&arena);
    return 0;
}
