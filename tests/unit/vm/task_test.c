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

/* --- waits ------------------------------------------------------------------------------------- */

/* gate() waits until the test opens it. */
static struct gate {
    struct task *task;
    unsigned     pushed, disarmed;
    bool         push_raises;
} gate;

static int push_gate(lua_State *L, void *op)
{
    struct gate *g = op;

    if (g->push_raises)
        luaL_error(L, "no room");
    g->pushed++;
    lua_pushliteral(L, "open");
    lua_pushinteger(L, lua_gettop(L) - 1); /* the arguments that are still there */
    return 2;
}

static void disarm_gate(void *op)
{
    struct gate *g = op;

    g->disarmed++;
    g->task = NULL;
}

static int push_late(lua_State *L)
{
    lua_pushliteral(L, "late");
    return 1;
}

/* gate([timeout_ms], ...) */
static int wait_gate(lua_State *L)
{
    struct task *task = task_current(L);

    if (task_is_cancelled(task))
        return task_stop(L);
    gate.task = task;
    if (lua_isnumber(L, 1))
        return task_wait_for(L, &gate, disarm_gate, push_gate, (uint64_t)lua_tonumber(L, 1),
                             push_late);
    return task_wait(L, &gate, disarm_gate, push_gate);
}

static int note_text(lua_State *L);

static void open_with_gate(struct fixture *f)
{
    fixture_open(f);
    memset(&gate, 0, sizeof(gate));
    lua_pushcfunction(f->vm->L, wait_gate);
    lua_setglobal(f->vm->L, "gate");
    lua_pushcfunction(f->vm->L, note_text);
    lua_setglobal(f->vm->L, "note");
}

/* note(text) appends it to `notes`: what happened, in order. */
static char notes[1024];

static int note_text(lua_State *L)
{
    strncat(notes, luaL_checkstring(L, 1), sizeof(notes) - strlen(notes) - 1);
    return 0;
}

TEST(a_woken_wait_gives_what_push_made_and_keeps_its_arguments)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "local text, count = gate(nil, {}, 'x') return text .. count");
    task_wake(gate.task);
    task_wake(gate.task);
    fixture_run(&f);
    CHECK_STR(f.text, "open3");
    CHECK_INT(gate.pushed, 1);
    CHECK_INT(gate.disarmed, 0);
    fixture_close(&f);
}

TEST(a_timeout_disarms_and_a_later_wake_finds_nothing)
{
    struct fixture f;
    struct task   *task;

    open_with_gate(&f);
    task = fixture_start(&f, "return gate(1)");
    fixture_run(&f);
    CHECK_STR(f.text, "late");
    CHECK_INT(gate.disarmed, 1);
    CHECK_INT(gate.pushed, 0);
    task_wake(task); /* the cell is free: ended tasks are not woken */
    CHECK_INT(f.ended, 1);
    fixture_close(&f);
}

TEST(a_cancelled_wait_is_called_off_and_never_resumed)
{
    struct fixture f;
    struct task   *task;

    open_with_gate(&f);
    task = fixture_start(&f, "while true do pcall(gate) end");
    task_cancel(task, "enough");
    CHECK_INT(gate.disarmed, 1);
    task_cancel(task, "again");
    fixture_run(&f);
    CHECK_INT(f.cancelled, 1);
    CHECK_STR(f.text, "enough");
    CHECK_INT(gate.pushed, 0);
    fixture_close(&f);
}

TEST(a_result_that_nobody_takes_is_dropped)
{
    struct fixture f;
    struct task   *task;

    open_with_gate(&f);
    task = fixture_start(&f, "gate()");
    task_wake(task);
    task_cancel(task, "too late");
    CHECK_INT(gate.disarmed, 1);
    fixture_run(&f);
    CHECK_INT(gate.pushed, 0);
    CHECK_INT(f.cancelled, 1);
    fixture_close(&f);
}

TEST(when_push_raises_disarm_has_the_last_word_and_only_that_task_ends)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "sleep(2) return 'other'");
    fixture_start(&f, "pcall(gate) return 'never'");
    gate.push_raises = true;
    task_wake(gate.task);
    fixture_run(&f);
    CHECK_INT(f.raised, 1);
    CHECK_INT(f.returned, 1);
    CHECK_INT(gate.disarmed, 1);
    CHECK_STR(f.text, "other");
    fixture_close(&f);
}

TEST(code_outside_a_task_is_told_so)
{
    struct fixture f;

    open_with_gate(&f);
    CHECK(luaL_dostring(f.vm->L, "gate()") != 0);
    CHECK(strstr(lua_tostring(f.vm->L, -1), "outside of any task"));
    fixture_close(&f);
}

TEST(a_wait_under_a_sort_raises_at_its_line_and_is_taken_back)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "local ok, why = pcall(table.sort, { 2, 1 }, function(a, b)\n"
                      "  gate()\n"
                      "end)\n"
                      "sleep(1) return why");
    CHECK_INT(gate.disarmed, 1);
    fixture_run(&f);
    CHECK_STR(f.text,
              "app.lua:2: gate cannot wait in a callback of table.sort, which cannot be left "
              "and entered again: collect what the order needs first, then sort");
    fixture_close(&f);
}

TEST(a_generator_under_gsub_that_waits_names_gsub)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f,
                  "local next_value = coroutine.wrap(function() gate() coroutine.yield('x') end)\n"
                  "local ok, why = pcall(string.gsub, 'a', 'a', next_value)\n"
                  "return why");
    CHECK(strstr(f.text, "app.lua:1: gate cannot wait in a callback of string.gsub"));
    CHECK_INT(gate.disarmed, 1);
    fixture_close(&f);
}

TEST(a_yield_with_nobody_to_take_it_is_an_error_that_can_be_caught)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "local ok, why = pcall(coroutine.yield)\nreturn why");
    CHECK(strstr(f.text, "app.lua:1: coroutine.yield outside of a coroutine"));
    fixture_start(&f, "local x = 1\ncoroutine.yield(x)");
    CHECK_INT(f.raised, 1);
    CHECK(strstr(f.text, "app.lua:2: coroutine.yield outside of a coroutine"));
    CHECK(strstr(f.trace, "app.lua:2:"));
    fixture_close(&f);
}

static int yield_in_c(lua_State *L)
{
    return lua_yield(L, lua_gettop(L));
}

TEST(a_yield_of_a_c_module_with_nobody_to_take_it_ends_the_task)
{
    struct fixture f;

    fixture_open(&f);
    lua_register(f.vm->L, "yield_in_c", yield_in_c);
    fixture_start(&f, "local x = 1\nyield_in_c(x)");
    CHECK_INT(f.raised, 1);
    CHECK(strstr(f.text, "app.lua:2: a C function yielded, and nobody takes that here"));
    fixture_close(&f);
}

TEST(another_task_cannot_resume_what_waits)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "co = coroutine.create(function() return (gate()) end)\n"
                      "local ok, text = coroutine.resume(co) return text");
    fixture_start(&f, "local ok, why = coroutine.resume(co)\n"
                      "return coroutine.status(co) .. ': ' .. why");
    CHECK_STR(f.text, "normal: cannot resume non-suspended coroutine");
    task_wake(gate.task);
    fixture_run(&f);
    CHECK_STR(f.text, "open");
    fixture_close(&f);
}

TEST(a_coroutine_abandoned_in_a_wait_is_dead)
{
    struct fixture f;
    struct task   *task;

    open_with_gate(&f);
    task = fixture_start(&f, "inner = coroutine.create(gate)\n"
                             "outer = coroutine.create(function() coroutine.resume(inner) end)\n"
                             "coroutine.resume(outer)");
    task_cancel(task, "gone");
    fixture_run(&f);
    fixture_start(&f, "local _, a = coroutine.resume(inner) local _, b = coroutine.resume(outer)\n"
                      "return coroutine.status(inner) .. coroutine.status(outer) .. a .. b");
    CHECK_STR(f.text, "deaddeadcannot resume dead coroutinecannot resume dead coroutine");
    fixture_close(&f);
}

TEST(endless_nesting_of_coroutines_is_an_error)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "local depth = 0\n"
                      "local function dig() depth = depth + 1 return coroutine.wrap(dig)() end\n"
                      "local ok, why = pcall(dig) return why .. (depth > 150 and '' or depth)");
    CHECK_STR(f.text, "C stack overflow");
    fixture_close(&f);
}

TEST(a_coroutine_that_was_seen_serves_no_other_task)
{
    struct fixture f;

    open_with_gate(&f);
    fixture_start(&f, "seen = coroutine.running()");
    fixture_start(&f, "return tostring(seen == coroutine.running())");
    CHECK_STR(f.text, "false");
    fixture_close(&f);
}

/* --- scopes -------------------------------------------------------------------------------------- */

static void note_child_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    strncat(notes,
            how == TASK_RETURNED ? "+"
            : how == TASK_RAISED ? "!"
                                 : "-",
            sizeof(notes) - strlen(notes) - 1);
    strncat(notes, arg, sizeof(notes) - strlen(notes) - 1);
}

/* child(name, fn): a child of the running task; name is a literal that outlives it */
static int start_child(lua_State *L)
{
    struct task_spec spec = { .on_end = note_child_end,
                              .arg    = (void *)lua_tostring(L, 1),
                              .parent = task_current(L) };

    lua_pushvalue(L, 2);
    task_spawn(L, 0, &spec);
    return 0;
}

static int put_off(lua_State *L)
{
    task_defer(L, 1);
    return 0;
}

struct note_held {
    struct held held;
};

static void note_release(struct held *held)
{
    strncat(notes, "released ", sizeof(notes) - strlen(notes) - 1);
    free(container_of(held, struct note_held, held));
}

static int hold(lua_State *L)
{
    struct note_held *held = malloc(sizeof(*held));

    held->held.release = note_release;
    task_hold(task_current(L), &held->held);
    return 0;
}

static int cancel_root(lua_State *L)
{
    task_cancel(task_root(task_current(L)), "by itself");
    return 0;
}

static void open_with_scopes(struct fixture *f)
{
    static const luaL_Reg FUNCTIONS[] = { { "child", start_child },
                                          { "defer", put_off },
                                          { "hold", hold },
                                          { "cancel_root", cancel_root },
                                          { NULL, NULL } };

    open_with_gate(f);
    notes[0] = '\0';
    for (const luaL_Reg *reg = FUNCTIONS; reg->name; reg++)
        lua_register(f->vm->L, reg->name, reg->func);
}

TEST(a_task_ends_after_its_children_whom_it_cancels)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "child('a', function() sleep(1) end)\n"
                      "child('b', function() child('c', gate) gate() end)\n"
                      "sleep(5) return 'over'");
    fixture_run(&f);
    CHECK_STR(notes, "+a-c-b");
    CHECK_STR(f.text, "over");
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_close(&f);
}

TEST(cancel_goes_children_wait_held_defers)
{
    struct fixture f;
    struct task   *task;

    open_with_scopes(&f);
    task = fixture_start(&f, "defer(function(e) note('first ' .. tostring(e) .. ' ') end)\n"
                             "defer(function(e) sleep(1) note('second ') end)\n"
                             "hold() child('c ', function() sleep(1000) end) gate()\n");
    fixture_start(&f, "sleep(1)");
    fixture_run_to_next_end(&f);
    task_cancel(task, "gone");
    CHECK_STR(notes, "released ");
    fixture_run(&f);
    CHECK_STR(notes, "released -c second first cancelled: gone ");
    CHECK_INT(f.cancelled, 1);
    fixture_close(&f);
}

TEST(defers_run_after_a_return_and_after_an_error_and_an_error_in_one_is_told)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "defer(function(e) note(tostring(e)) end)\n"
                      "defer(function() error('in the defer') end) return 'fine'");
    fixture_run(&f);
    CHECK_STR(notes, "nil");
    CHECK_STR(f.text, "fine");
    CHECK_INT(f.reports, 1);
    CHECK(strstr(f.report, "error in a defer: app.lua:2: in the defer\nstack traceback:"));
    fixture_start(&f, "defer(function(e) note(e) end) error('bad')");
    fixture_run(&f);
    CHECK_STR(notes, "nilapp.lua:1: bad");
    CHECK_STR(f.text, "app.lua:1: bad");
    fixture_close(&f);
}

/* The test has no five seconds to lose. */
static int hurry(lua_State *L)
{
    task_set_deadline(task_current(L), 1);
    return 0;
}

TEST(a_defer_that_takes_all_the_time_leaves_the_others_a_chance)
{
    struct fixture f;

    open_with_scopes(&f);
    lua_register(f.vm->L, "hurry", hurry);
    fixture_start(&f, "defer(function() note('a') end)\n"
                      "defer(function() note('b') sleep(100000) note('never') end)\n"
                      "defer(function() note('c') end)\n"
                      "defer(function() note('d') hurry() sleep(100000) note('never') end)\n"
                      "sleep(1)");
    fixture_run(&f);
    CHECK_STR(notes, "dcba");
    CHECK_INT(f.reports, 2);
    CHECK(strstr(f.report, "a defer was cut off: deadline"));
    CHECK_INT(f.returned, 1);
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_close(&f);
}

TEST(a_running_task_that_was_cancelled_stops_at_its_next_wait)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "cancel_root() note('still ') pcall(gate) note('never')");
    fixture_run(&f);
    CHECK_STR(notes, "still ");
    CHECK_INT(f.cancelled, 1);
    CHECK_STR(f.text, "by itself");
    fixture_close(&f);
}

TEST(where_no_yield_can_pass_the_cancelled_one_gets_an_error)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "cancel_root()\n"
                      "local ok, e = pcall(table.sort, { 1, 2 }, function() gate() end) note(e)\n"
                      "gate() note('never')");
    fixture_run(&f);
    CHECK_STR(notes, "cancelled: by itself");
    CHECK_INT(f.cancelled, 1);
    fixture_close(&f);
}

TEST(a_child_that_cancels_its_root_ends_too)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "child('c', function() cancel_root() gate() note('never') end) gate()");
    fixture_run(&f);
    CHECK_STR(notes, "-c");
    CHECK_INT(f.cancelled, 1);
    fixture_close(&f);
}

TEST(what_a_task_starts_begins_right_after_it)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "for i = 1, 3 do\n"
                      "  child('', function() note(i) child('', function() note('a') end)\n"
                      "    child('', function() note('b') end) sleep(1) end)\n"
                      "end sleep(5)");
    fixture_run(&f);
    CHECK_STR(notes, "1a+b+2a+b+3a+b++++");
    fixture_close(&f);
}

TEST(a_thousand_beginnings_do_not_hold_up_what_is_under_way)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f,
                  "local begun, seen = 0, 0\n"
                  "child('', function() sleep(0) seen = begun end)\n"
                  "for i = 1, 10000 do child('', function() begun = begun + 1 sleep(20) end) end\n"
                  "while begun < 10000 do sleep(1) end\n"
                  "return seen > 0 and seen < 1000 and 'soon' or 'late'");
    fixture_run(&f);
    CHECK_STR(f.text, "soon");
    fixture_close(&f);
}

TEST(a_thousand_nested_scopes_are_cancelled_without_recursion)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "local function nest(n)\n"
                      "  if n == 0 then cancel_root() gate() end\n"
                      "  child('', function() nest(n - 1) end) gate()\n"
                      "end\n"
                      "nest(20000)");
    fixture_run(&f);
    CHECK_INT(f.cancelled, 1);
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_close(&f);
}

TEST(abandoned_tasks_leave_nothing_behind)
{
    struct fixture f;

    open_with_scopes(&f);
    fixture_start(&f, "defer(function() note('never') end) hold() child('c', gate) gate()");
    fixture_start(&f, "coroutine.wrap(function() sleep(100000) end)()");
    vm_abandon_tasks(f.vm);
    CHECK_INT(f.cancelled, 2);
    CHECK_STR(notes, "released -c");
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_close(&f);
}

/* --- deadlines ------------------------------------------------------------------------------------- */

TEST(a_deadline_cancels_the_task_with_its_children)
{
    struct fixture f;
    struct task   *task;

    open_with_scopes(&f);
    task = fixture_start(&f, "child('c', gate) while true do pcall(sleep, 1) end");
    CHECK(task_time_left(task) < 0);
    task_set_deadline(task, 10);
    CHECK(task_time_left(task) > 0 && task_time_left(task) <= 0.010);
    fixture_run(&f);
    CHECK_STR(f.text, "deadline");
    CHECK_STR(notes, "-c");
    fixture_close(&f);
}

TEST(a_deadline_that_was_taken_away_does_not_come)
{
    struct fixture f;
    struct task   *task;

    open_with_scopes(&f);
    task = fixture_start(&f, "sleep(20) return 'slept'");
    task_set_deadline(task, 5);
    task_set_deadline(task, 0);
    fixture_run(&f);
    CHECK_STR(f.text, "slept");
    fixture_close(&f);
}

TEST(a_long_deadline_counts_from_the_start)
{
    struct fixture   f;
    struct task_spec spec = {
        .prepare = fixture_prepare, .on_end = fixture_on_end, .arg = &f, .deadline_ms = 1000
    };

    open_with_scopes(&f);
    fixture_code = "gate()";
    task_start(f.vm, &spec);
    task_start(f.vm, &spec);
    fixture_run(&f);
    CHECK_INT(f.cancelled, 2);
    CHECK_STR(f.text, "deadline");
    fixture_close(&f);
}

/* --- the callbacks of an end -------------------------------------------------------------------- */

static void on_first_part(struct task *task, enum task_end how, lua_State *co, void *arg);

static void on_result_going_on(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    CHECK_INT(how, TASK_RETURNED);
    lua_settop(co, 1); /* the function that was returned */
    lua_pushliteral(co, "again");
    task_continue(task, co, 1, on_first_part);
}

static void on_first_part(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    strncat(notes, how == TASK_RETURNED ? lua_tostring(co, -1) : "raised ", sizeof(notes) / 2);
    if (how == TASK_RAISED)
        return;
    luaL_loadstring(co, "error('formatter')");
    task_continue(task, co, 0, on_first_part);
}

static void on_whole_end(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    CHECK(co == NULL);
    strncat(notes, "end", sizeof(notes) / 2);
}

TEST(a_result_may_go_on_in_the_same_task_while_children_live)
{
    struct fixture   f;
    struct task_spec spec = { .prepare   = fixture_prepare,
                              .on_result = on_result_going_on,
                              .on_end    = on_whole_end };

    open_with_scopes(&f);
    fixture_code = "child('c ', function() defer(function() sleep(3) end) gate() end)\n"
                   "return function(word) sleep(1) return word .. ' ' end";
    task_start(f.vm, &spec);
    fixture_run(&f);
    CHECK_STR(notes, "again raised -c end");
    fixture_close(&f);
}

static void on_end_going_on(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    lua_settop(co, 0);
    luaL_loadstring(co, "hold() child('late ', gate) sleep(1) return 'second'");
    task_continue(task, co, 0, fixture_on_end);
}

TEST(an_end_may_go_on_with_a_scope_of_its_own)
{
    struct fixture   f;
    struct task_spec spec = {
        .prepare = fixture_prepare, .on_end = on_end_going_on, .arg = &f, .deadline_ms = 100
    };

    open_with_scopes(&f);
    fixture_code = "hold() return 1";
    task_start(f.vm, &spec);
    fixture_run(&f);
    CHECK_STR(f.text, "second");
    CHECK_STR(notes, "released released -late ");
    fixture_start(&f, "sleep(150)"); /* the first one's deadline is gone with it */
    fixture_run(&f);
    CHECK_INT(f.returned, 2);
    fixture_close(&f);
}

/* LuaJIT of 2023 raises a finalizer's error wherever the collector happened to run; later ones keep it
 * to themselves. */
static bool finalizers_raise(void)
{
    lua_State *L      = luaL_newstate();
    bool       raises = false;

    luaL_openlibs(L);
    if (luaL_dostring(L, "getmetatable(newproxy(true)).__gc = function() error 'x' end\n"
                         "return not (pcall(collectgarbage) and pcall(collectgarbage))") == 0)
        raises = lua_toboolean(L, -1);
    lua_close(L);
    return raises;
}

TEST(an_error_in_a_finalizer_is_told_and_harms_no_task)
{
    struct fixture f;

    fixture_open_bounded(&f, 8 * 1024 * 1024);
    fixture_start(&f, "collectgarbage 'stop'\n"
                      "local proxy = newproxy(true)\n"
                      "getmetatable(proxy).__gc = function() error 'in the finalizer' end\n"
                      "proxy = nil\n"
                      "local t = {} while true do t[#t + 1] = ('x'):rep(10000 + #t) end");
    CHECK_STR(f.report,
              finalizers_raise() ? "error in a finalizer: app.lua:3: in the finalizer" : "");
    CHECK_INT(f.raised, 1);
    fixture_start(&f, "return 'fine'");
    CHECK_STR(f.text, "fine");
    fixture_close(&f);
}

static void on_end_raising(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    luaL_error(co, "in the callback");
}

TEST(an_error_in_a_callback_is_told_and_ends_nothing_else)
{
    struct fixture   f;
    struct task_spec spec = { .prepare = fixture_prepare, .on_result = on_end_raising };

    open_with_scopes(&f);
    fixture_start(&f, "sleep(2) return 'other'");
    fixture_code = "sleep(1)";
    task_start(f.vm, &spec);
    spec = (struct task_spec){ .prepare = fixture_prepare, .on_end = on_end_raising };
    task_start(f.vm, &spec);
    fixture_run_to_next_end(&f);
    CHECK_STR(f.text, "other");
    CHECK_INT(f.reports, 2);
    CHECK_STR(f.report, "error in on_end: in the callback");
    CHECK_INT(sched_task_count(f.sched), 0);
    fixture_close(&f);
}

/* --- memory ------------------------------------------------------------------------------------------ */

TEST(a_task_without_memory_ends_alone)
{
    struct fixture f;

    fixture_open_bounded(&f, 8 * 1024 * 1024);
    fixture_start(&f, "sleep(20) return 'other'");
    fixture_start(&f, "local t = {} while true do t[#t + 1] = ('x'):rep(10000 + #t) end");
    CHECK_STR(f.text, "not enough memory");
    CHECK_INT(f.raised, 1);
    fixture_run(&f);
    CHECK_STR(f.text, "other");
    fixture_close(&f);
}

static int prepare_large(lua_State *co, struct task *task, void *arg)
{
    luaL_Buffer buffer;

    luaL_buffinit(co, &buffer);
    for (int i = 0; i < 100000; i++)
        luaL_addlstring(&buffer, notes, sizeof(notes));
    luaL_pushresult(&buffer);
    return 0;
}

TEST(arguments_that_do_not_fit_end_that_task_alone)
{
    struct fixture   f;
    struct task_spec spec = { .prepare = prepare_large, .on_end = fixture_on_end, .arg = &f };

    fixture_open_bounded(&f, 8 * 1024 * 1024);
    fixture_start(&f, "sleep(1) return 'other'");
    CHECK(task_start(f.vm, &spec) == NULL);
    CHECK_INT(f.raised, 1);
    fixture_run(&f);
    CHECK_STR(f.text, "other");
    fixture_close(&f);
}

/* --- tickets ------------------------------------------------------------------------------------------- */

TEST(the_cells_of_a_burst_go_back_and_its_tickets_stay_stale)
{
    struct fixture f;
    struct ticket  old[200];

    fixture_open(&f);
    for (int i = 0; i < 200; i++)
        old[i] = task_ticket(fixture_start(&f, "sleep(1)"));
    fixture_run(&f);
    vm_tidy(f.vm);
    for (int i = 0; i < 200; i++)
        CHECK(ticket_task(f.sched, old[i]) == NULL);
    for (int i = 0; i < 200; i++) {
        struct task *task = fixture_start(&f, "sleep(1)");

        CHECK(ticket_task(f.sched, task_ticket(task)) == task);
    }
    for (int i = 0; i < 200; i++)
        CHECK(ticket_task(f.sched, old[i]) == NULL);
    fixture_run(&f);
    fixture_close(&f);
}

TEST(a_ticket_is_stale_when_its_wait_has_ended)
{
    struct fixture f;
    struct ticket  first, second;

    open_with_gate(&f);
    fixture_start(&f, "gate() gate() sleep(1)");
    first = task_ticket(gate.task);
    CHECK(ticket_task(f.sched, first) == gate.task);
    task_wake(gate.task);
    CHECK(ticket_task(f.sched, first) == NULL);
    fixture_start(&f, "sleep(1)");
    fixture_run_to_next_end(&f);
    CHECK_INT(gate.pushed, 1);
    second = task_ticket(gate.task);
    CHECK(ticket_task(f.sched, second) == gate.task);
    second.worker = 7;
    CHECK(ticket_task(f.sched, second) == NULL);
    second = (struct ticket){ 0, 1000000, 0 };
    CHECK(ticket_task(f.sched, second) == NULL);
    task_cancel(gate.task, "enough");
    CHECK_INT(f.ended, 1);
    fixture_close(&f);
}

int main(void)
{
    return check_run();
}
