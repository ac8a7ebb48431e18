#include "vm/task.h"

#include "support/check.h"
#include "support/vm_fixture.h"

TEST(a_task_that_does_not_wait_is_over_at_once)
{
    struct fixture f;

    fixture_open(&f);
    CHECK(fixture_start(&f, "return 'done'") == NULL);
    CHECK_INT(f.returned, 1);
    CHECK_STR(f.text, "done");
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_close(&f);
}

TEST(a_sleep_ends_with_its_timer)
{
    struct fixture f;

    fixture_open(&f);
    CHECK(fixture_start(&f, "sleep(3) sleep(3) return 'awake'") != NULL);
    CHECK_INT(f.ended, 0);
    fixture_run(&f);
    CHECK_STR(f.text, "awake");
    fixture_close(&f);
}

TEST(an_error_is_raised_with_its_traceback)
{
    struct fixture f;

    fixture_open(&f);
    fixture_start(&f, "local function inner() sleep(1) error('lost') end\n inner() return 1");
    fixture_run(&f);
    CHECK_INT(f.raised, 1);
    CHECK_STR(f.text, "app.lua:1: lost");
    CHECK(strstr(f.trace, "in function 'inner'"));
    CHECK(strstr(f.trace, "app.lua:2: in main chunk") || strstr(f.trace, "app.lua:2: in function"));
    fixture_close(&f);
}

TEST(a_generator_may_wait_at_any_depth)
{
    struct fixture f;

    fixture_open(&f);
    fixture_start(&f, "local function nest(depth, v)\n"
                      "  if depth == 0 then sleep(1) return v end\n"
                      "  return coroutine.wrap(function() return nest(depth - 1, v) end)()\n"
                      "end\n"
                      "local gen = coroutine.wrap(function()\n"
                      "  for i = 1, 3 do sleep(1) coroutine.yield(nest(20, i)) end\n"
                      "end)\n"
                      "return table.concat({ gen(), gen(), gen() }, ' ')");
    fixture_run(&f);
    CHECK_STR(f.text, "1 2 3");
    fixture_close(&f);
}

TEST(an_error_tells_its_way_through_all_coroutines)
{
    struct fixture f;

    fixture_open(&f);
    fixture_start(&f, "local function deep() sleep(1) error('lost') end\n"
                      "local a = coroutine.wrap(function() deep() return 1 end)\n"
                      "local b = coroutine.wrap(function() a() return 1 end)\n"
                      "b() return 1");
    fixture_run(&f);
    CHECK_STR(f.text, "app.lua:1: lost");
    CHECK(strstr(f.trace, "in function 'deep'"));
    CHECK(strstr(f.trace, "resumed from:"));
    CHECK(strstr(f.trace, "app.lua:2:"));
    CHECK(strstr(f.trace, "app.lua:3:"));
    CHECK(strstr(f.trace, "app.lua:4:"));
    fixture_close(&f);
}

int main(void)
{
    return check_run();
}
