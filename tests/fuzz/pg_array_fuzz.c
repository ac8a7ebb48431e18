/* links: srv_data
 *
 * Whatever the bytes are: reading an array ends, nests as it says, and an array made of JSON is read
 * again. */
#include <stdint.h>
#include <stdlib.h>

#include "data/pg_array.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

/* Whether it is an array. */
static bool read_whole(struct str text)
{
    struct pg_array     array;
    enum pg_array_event event;
    unsigned            depth = 0;
    size_t              steps = 0;

    pg_array_init(&array, text, ',');
    while ((event = pg_array_next(&array)) != PG_ARRAY_END && event != PG_ARRAY_BAD) {
        must(++steps <= 2 * text.len + 2);
        depth += event == PG_ARRAY_OPEN;
        depth -= event == PG_ARRAY_CLOSE;
        must(depth <= PG_ARRAY_DEPTH_MAX);
        must(event != PG_ARRAY_ELEMENT || array.element.len <= text.len);
    }
    must(event == PG_ARRAY_BAD || depth == 0);
    must(pg_array_next(&array) == event || event == PG_ARRAY_BAD);
    pg_array_fini(&array);
    return event == PG_ARRAY_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = str_make((const char *)bytes, len);
    struct buf out;

    read_whole(text);
    buf_init(&out, 64 * 1024);
    if (pg_array_from_json(&out, text, len % 2 == 0) && !out.failed)
        read_whole(buf_str(&out));
    buf_fini(&out);
    return 0;
}
