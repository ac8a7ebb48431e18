#include "server/reload.h"

#include <stdio.h>

#include "support/check.h"

/* What the state machine asked for, as text: "load 0 v1; commit v1; ". */
static char   story[1024];
static size_t told;

static void tell(const char *what, unsigned worker, unsigned version)
{
    told +=
        (size_t)snprintf(story + told, sizeof(story) - told, "%s %u v%u; ", what, worker, version);
}

static void load(unsigned worker, unsigned version, void *arg)
{
    tell("load", worker, version);
}

static void discard(unsigned worker, unsigned version, void *arg)
{
    tell("discard", worker, version);
}

static void commit(unsigned version, void *arg)
{
    tell("commit", 0, version);
}

static void refused(unsigned version, const char *why, void *arg)
{
    tell(why, 0, version);
}

static const struct reload_ops OPS = { load, discard, commit, refused };

static struct reload fresh(unsigned workers)
{
    struct reload reload;

    told     = 0;
    story[0] = '\0';
    reload_init(&reload, workers, &OPS, NULL);
    return reload;
}

TEST(workers_load_one_after_the_other_then_all_switch)
{
    struct reload reload = fresh(2);

    reload_begin(&reload);
    CHECK_STR(story, "load 0 v1; ");
    reload_loaded(&reload, 0, 1);
    CHECK_STR(story, "load 0 v1; load 1 v1; ");
    reload_loaded(&reload, 1, 1);
    CHECK_STR(story, "load 0 v1; load 1 v1; commit 0 v1; ");
    CHECK(!reload_is_under_way(&reload));
    CHECK_INT(reload.current, 1);
}

TEST(a_version_that_does_not_load_is_dropped_everywhere)
{
    struct reload reload = fresh(2);

    reload_begin(&reload);
    reload_loaded(&reload, 0, 1);
    reload_loaded(&reload, 1, 1);
    told = 0;
    reload_begin(&reload);
    reload_loaded(&reload, 0, 2);
    reload_failed(&reload, 1, 2, "broken");
    CHECK_STR(story, "load 0 v2; load 1 v2; discard 0 v2; discard 1 v2; broken 0 v2; ");
    CHECK_INT(reload.current, 1);
    CHECK(!reload_is_under_way(&reload));
}

TEST(a_newer_edit_calls_the_loading_version_off)
{
    struct reload reload = fresh(2);

    reload_begin(&reload);
    reload_loaded(&reload, 0, 1);
    reload_begin(&reload);
    CHECK_STR(story, "load 0 v1; load 1 v1; discard 0 v1; discard 1 v1; load 0 v2; ");
}

TEST(answers_for_a_version_that_was_called_off_are_ignored)
{
    struct reload reload = fresh(1);

    reload_begin(&reload);
    reload_begin(&reload);
    told     = 0;
    story[0] = '\0';
    reload_loaded(&reload, 0, 1);
    reload_failed(&reload, 0, 1, "broken");
    CHECK_STR(story, "");
    reload_loaded(&reload, 0, 2);
    CHECK_STR(story, "commit 0 v2; ");
}

int main(void)
{
    return check_run();
}
