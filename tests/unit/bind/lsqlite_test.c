#include "bind/lsqlite.h"

#include <unistd.h>

#include "bind/env.h"
#include "bind/script.h"
#include "data/sqlite.h"
#include "ev/pool.h"
#include "support/check.h"
#include "support/vm_fixture.h"

static struct fixture fixture;
static struct env     env;
static struct pool   *pool;
static char           folder[64];

static void open_app(void)
{
    struct err err;

    fixture_open(&fixture);
    snprintf(folder, sizeof(folder), "/tmp/srv-lsqlite-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    CHECK_INT(pool_open(&pool, &err), 0);
    env          = (struct env){ .loop = fixture.loop, .sched = fixture.sched, .pool = pool };
    env.app_root = folder;
    CHECK_INT(lane_open(&env.lane_sqlite, pool, "sqlite", 2, 64, &err), 0);
    CHECK_INT(lane_open(&env.lane_file, pool, "file", 1, 64, &err), 0);
    CHECK_INT(sqlite_open(&env.sqlite, env.lane_sqlite, &err), 0);
    fixture.vm->env = &env;
    CHECK_INT(script_open(fixture.vm, &env, &err), 0);
    fixture_run_lua(fixture.vm->L, "rawset(_G, 'app', { pool = require 'srv.db.pool' })");
}

static void close_app(void)
{
    char command[128];

    vm_abandon_tasks(fixture.vm);
    vm_close(fixture.vm);
    pool_close(pool);
    sqlite_close(env.sqlite);
    sched_close(fixture.sched);
    loop_close(fixture.loop);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
}

/* The text that CODE, a task's function, returned or raised. */
static const char *run(const char *code)
{
    fixture.text[0] = '\0';
    fixture_start(&fixture, code);
    while (fixture.vm->task_count > 0) /* a cancelled one may have broken the loop before */
        loop_run(fixture.loop);
    return fixture.text;
}

#define CHECK_RUN(code, want)                                                                      \
    do {                                                                                           \
        const char *text_ = run(code);                                                             \
        CHECK_STR(text_, want);                                                                    \
    } while (0)

/* Turns until the code in Lua has set app.there. */
static void run_until_there(void)
{
    for (;;) {
        bool there;

        lua_getglobal(fixture.vm->L, "app");
        lua_getfield(fixture.vm->L, -1, "there");
        there = lua_toboolean(fixture.vm->L, -1);
        lua_pop(fixture.vm->L, 2);
        if (there)
            return;
        CHECK(fixture.vm->task_count > 0);
        fixture_start(&fixture, "sleep(1)");
        fixture_run_to_next_end(&fixture);
    }
}

#define NUMBERS "with recursive c (n) as (select 1 union all select n + 1 from c) select n from c"
#define ENDLESS                                                                                    \
    "with recursive c (n) as (select 1 union all select n + 1 from c) select max(n) from c"

TEST(a_query_waits_and_gives_rows)
{
    open_app();
    CHECK_RUN("app.db = app.pool.open 'sqlite:a.db'\n"
              "assert(app.db:exec 'create table t (id integer primary key, name text)')\n"
              "assert(app.db:insert('t', { name = 'x' }) == 1)\n"
              "local rows = assert(app.db:query('select * from t where name = $1', 'x'))\n"
              "return #rows .. rows[1].id .. rows[1].name",
              "11x");
    close_app();
}

TEST(a_cancelled_transaction_is_rolled_back_before_the_next)
{
    struct task *task;

    open_app();
    CHECK_RUN("app.db = app.pool.open 'sqlite:a.db'\n"
              "assert(app.db:exec 'create table t (n)')",
              "");
    task = fixture_start(&fixture, "app.db:tx(function(tx)\n"
                                   "  tx:exec 'insert into t values (1)'\n"
                                   "  app.there = true\n"
                                   "  tx:query '" ENDLESS "'\n"
                                   "end)");
    run_until_there();
    task_cancel(task, "test");
    CHECK_RUN("assert(app.db:exec 'insert into t values (2)')\n"
              "return app.db:value 'select group_concat(n) from t'",
              "2");
    close_app();
}

TEST(a_task_that_ends_inside_its_transaction_gives_the_writer_back)
{
    struct task *task;

    open_app();
    CHECK_RUN("app.db = app.pool.open 'sqlite:a.db'\n"
              "assert(app.db:exec 'create table t (n)')",
              "");
    task = fixture_start(&fixture, "app.db:tx(function(tx)\n"
                                   "  tx:exec 'insert into t values (1)'\n"
                                   "  app.there = true\n"
                                   "  sleep(100000)\n"
                                   "end)");
    run_until_there();
    task_cancel(task, "test");
    CHECK_RUN("assert(app.db:exec 'insert into t values (2)')\n"
              "return app.db:value 'select group_concat(n) from t'",
              "2");
    close_app();
}

TEST(a_cancelled_query_leaves_its_connection_usable)
{
    struct task *task;

    open_app();
    CHECK_RUN(
        "app.db = app.pool.open('sqlite:a.db', { pool = 2 })\nassert(app.db:query 'select 1')", "");
    for (int i = 0; i < 10; i++) {
        task = fixture_start(&fixture, "app.db:query '" ENDLESS "'");
        task_cancel(task, "test");
    }
    CHECK_RUN("return app.db:value 'select 7'", "7");
    close_app();
}

TEST(a_vm_that_goes_leaves_no_lease_and_no_database)
{
    open_app();
    fixture_start(&fixture, "app.db = app.pool.open 'sqlite:a.db'\n"
                            "app.db:tx(function(tx)\n"
                            "  tx:exec 'create table t (n)'\n"
                            "  app.there = true\n"
                            "  tx:query '" ENDLESS "'\n"
                            "end)");
    run_until_there();
    fixture_start(&fixture, "for row in app.db:rows '" ENDLESS "' do end");
    close_app();
}

TEST(a_loop_that_is_left_gives_its_reader_back_when_its_task_ends)
{
    open_app();
    CHECK_RUN("app.db = app.pool.open('sqlite:a.db', { pool = 2, timeout = '10s' })\n"
              "local function leave()\n"
              "  for row in app.db:rows '" NUMBERS "' do\n"
              "    if row.n == 150 then return end\n"
              "  end\n"
              "end\n"
              "for i = 1, 3 do\n"
              "  leave()\n"
              "  collectgarbage() collectgarbage()\n"
              "end\n"
              "for row in app.db:rows 'values (1), (2)' do app.last = row.column1 end\n"
              "leave()\n"
              "return 'left'",
              "left");
    CHECK_RUN("return app.last + app.db:value 'select 7'", "9");
    close_app();
}

TEST(who_would_wait_for_itself_is_told)
{
    open_app();
    CHECK_RUN(
        "app.db = app.pool.open 'sqlite:a.db'\n"
        "assert(app.db:exec 'create table t (n)')\n"
        "local ok, err = pcall(app.db.tx, app.db, function(tx)\n"
        "  app.db:query 'select 1'\n"
        "  app.db:exec 'insert into t values (1)'\n"
        "end)\n"
        "return tostring(err):gsub('^(.-:%d+: .-%:).*', '%1') .. tostring(app.db:value 'select count(*) from t')",
        "app.lua:5: srv.db:0");
    close_app();
}

int main(void)
{
    return check_run();
}
