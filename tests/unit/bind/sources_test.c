#include "bind/sources.h"

#include <stdio.h>

#include "base/err.h"
#include "support/check.h"

static struct sources *sources;

static void setup(const char *path)
{
    struct err err;

    CHECK_INT(sources_open(&sources, &err), 0);
    CHECK(sources_add(sources, path));
}

TEST(a_named_folder_is_touched_by_itself_by_what_is_in_it_and_by_what_it_is_in)
{
    setup("/app/locales/de/");
    CHECK(sources_touch(sources, "/app/locales/de"));
    CHECK(sources_touch(sources, "/app/locales/de/shop.json"));
    CHECK(sources_touch(sources, "/app/locales"));
    CHECK(!sources_touch(sources, "/app/locales/de.json"));
    CHECK(!sources_touch(sources, "/app/loc"));
    CHECK(!sources_touch(sources, "/app/data"));
    sources_close(sources);
}

TEST(a_path_counts_once_and_they_have_a_bound)
{
    char path[32];

    setup("/app/0");
    for (int i = 0; i < SOURCES_MAX; i++) {
        sprintf(path, "/app/%d", i);
        CHECK(sources_add(sources, path));
    }
    CHECK(sources_add(sources, "/app/7/"));
    CHECK(!sources_add(sources, "/app/more"));
    sources_close(sources);
}

TEST(where_nobody_looks_all_may_be_named)
{
    CHECK(sources_add(NULL, "/app/x"));
    sources_close(NULL);
}

int main(void)
{
    return check_run();
}
