#include "bind/lhttp_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/coding.h"
#include "bind/lcall_table.h"

enum { SCRATCH_KEPT_BYTES = 256 * 1024 }; /* of a large answer's buffer */

struct lhttp *lhttp_new(const struct lhttp_options *options)
{
    struct lhttp *http = calloc(1, sizeof(*http));

    if (!http) {
        fputs("srv: out of memory\n", stderr);
        abort();
    }
    http->options = *options;
    http->calls   = lcall_table_new();
    buf_init(&http->scratch, LHTTP_SCRATCH_BYTES_MAX);
    buf_init(&http->coded, LHTTP_SCRATCH_BYTES_MAX);
    return http;
}

void lhttp_free(struct lhttp *http)
{
    if (!http)
        return;
    lcall_table_free(http->calls);
    buf_fini(&http->scratch);
    buf_fini(&http->coded);
    for (unsigned id = 0; id < CODINGS_COUNT; id++)
        coding_free(http->writers[id]);
    free(http);
}

void lhttp_forget_site(struct lhttp *http, const struct lsite *site)
{
    if (http->site == site)
        http->site = NULL;
}

struct buf *lhttp_scratch(struct lhttp *http)
{
    buf_clear(&http->scratch);
    buf_shrink(&http->scratch, SCRATCH_KEPT_BYTES);
    return &http->scratch;
}
