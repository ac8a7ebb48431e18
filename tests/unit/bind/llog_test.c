#include "bind/llog.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "base/log.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "ev/loop.h"
#include "support/check.h"
#include "vm/sched.h"
#include "vm/vm.h"

static char path[] = "/tmp/srv-llog-test-XXXXXX";

static struct loop  *loop;
static struct sched *sched;
static struct vm    *vm;
static struct env    env;

static struct str request_id(lua_State *L)
{
    return STR("r1");
}

static void open_vm(void)
{
    struct vm_options options = { .memory_bytes = 64 << 20 };

    env = (struct env){ .app_root = "/" };
    CHECK_INT(loop_open(&loop, NULL), 0);
    CHECK_INT(sched_open(&sched, loop, 0, NULL), 0);
    CHECK_INT(vm_open(&vm, sched, &options, NULL), 0);
    vm->env = &env;
    luaL_openlibs(vm->L);
    CHECK_INT(lerror_open(vm->L), 1);
    lua_settop(vm->L, 0);
    CHECK_INT(llog_open(vm->L), 1);
    lua_setglobal(vm->L, "log");
    llog_take_print(vm->L);
}

static void close_vm(void)
{
    vm_close(vm);
    sched_close(sched);
    loop_close(loop);
}

static void run(const char *code)
{
    if (luaL_dostring(vm->L, code)) {
        fprintf(stderr, "%s\n", lua_tostring(vm->L, -1));
        CHECK(!"the chunk ran");
    }
    lua_settop(vm->L, 0);
}

/* What the file holds; static memory. */
static char *log_text(void)
{
    static char text[65536];
    FILE       *file = fopen(path, "r");

    CHECK(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void run_logged(const char *code)
{
    struct log_options options = {
        .path = path, .format = LOG_JSON, .level = LOG_INFO, .threadless = true
    };
    struct log *log = NULL;

    CHECK_INT(truncate(path, 0), 0);
    CHECK_INT(log_open(&log, &options, NULL), 0);
    run(code);
    log_close(log);
}

/* The part behind the pid of the one line that CODE logs. */
static const char *line_of(const char *code)
{
    char *line;

    run_logged(code);
    line = strstr(log_text(), "\"pid\":");
    CHECK(line);
    line = strchr(line, ',') + 1;
    CHECK(strchr(line, '\n') == line + strlen(line) - 1);
    line[strlen(line) - 1] = '\0';
    return line;
}

TEST(a_message_and_its_fields_make_a_line)
{
    open_vm();
    CHECK_STR(line_of("log.info('hello')"), "\"msg\":\"hello\"}");
    CHECK_STR(
        line_of("log.warn('m', { s = 'a\"b', n = 1, f = 0.5, t = true, big = 2^53 })"),
        "\"msg\":\"m\",\"big\":9007199254740992,\"f\":0.5,\"n\":1,\"s\":\"a\\\"b\",\"t\":true}");
    CHECK_STR(line_of("log.error(42, { nan = 0/0, inf = -1/0 })"),
              "\"msg\":\"42\",\"inf\":\"-inf\",\"nan\":\"nan\"}");
    CHECK_STR(line_of("log:info('as a method')"), "\"msg\":\"as a method\"}");
    close_vm();
}

TEST(each_level_has_its_number)
{
    open_vm();
    run_logged(
        "log.trace 'no' log.debug 'no' log.info 'a' log.warn 'b' log.error 'c' log.fatal 'd'");
    CHECK(!strstr(log_text(), "\"no\""));
    for (int level = LOG_INFO; level <= LOG_FATAL; level += 10) {
        char want[32];

        snprintf(want, sizeof(want), "{\"level\":%d,", level);
        CHECK(strstr(log_text(), want));
    }
    run_logged("assert(log.wants 'info' and not log.wants 'debug')");
    close_vm();
}

TEST(tables_are_json_and_arrays_stay_arrays)
{
    open_vm();
    CHECK_STR(line_of("log.info('m', { list = { 1, 'b', { c = false } }, none = {} })"),
              "\"msg\":\"m\",\"list\":[1,\"b\",{\"c\":false}],\"none\":{}}");
    CHECK_STR(line_of("log.info('m', { f = print, co = coroutine.create(print) })"),
              "\"msg\":\"m\",\"co\":\"thread\",\"f\":\"function\"}");
    close_vm();
}

TEST(secrets_are_masked_at_any_depth)
{
    open_vm();
    CHECK_STR(
        line_of("log.info('m', { password = 'p', access_token = 't', tokens = 1, a = { b = {"
                " Authorization = 'Basic x', ['Set-Cookie'] = 'c', client_secret = {} } } })"),
        "\"msg\":\"m\",\"a\":{\"b\":{\"Authorization\":\"[masked]\",\"Set-Cookie\":\"[masked]\","
        "\"client_secret\":\"[masked]\"}},\"access_token\":\"[masked]\","
        "\"password\":\"[masked]\",\"tokens\":1}");
    close_vm();
}

TEST(with_adds_fields_which_a_line_may_override)
{
    open_vm();
    CHECK_STR(line_of("local l = log.with { job = 'import', n = 1 }.with { id = 7 }"
                      "l.info('m', { n = 2 })"),
              "\"msg\":\"m\",\"id\":7,\"job\":\"import\",\"n\":2}");
    CHECK_STR(line_of("local l = log.with { job = 1 } l:with { id = 7 } l:info 'm'"),
              "\"msg\":\"m\",\"job\":1}");
    CHECK_STR(line_of("log.with { secret = 's' }.info 'm'"),
              "\"msg\":\"m\",\"secret\":\"[masked]\"}");
    close_vm();
}

TEST(a_line_of_a_request_bears_its_id_once)
{
    open_vm();
    env.request_id = request_id;
    CHECK_STR(line_of("log.info('m', { a = 1 })"), "\"msg\":\"m\",\"reqId\":\"r1\",\"a\":1}");
    CHECK_STR(line_of("log.with { reqId = 'r2' }.info 'm'"), "\"msg\":\"m\",\"reqId\":\"r2\"}");
    CHECK_STR(line_of("print 'm'"), "\"msg\":\"m\",\"reqId\":\"r1\"}");
    close_vm();
}

TEST(an_error_object_is_told_with_code_and_cause)
{
    open_vm();
    lerror_push(vm->L, "no_row", "no row in %s", "articles");
    lua_setglobal(vm->L, "err");
    CHECK_STR(line_of("log.warn('m', { err = err })"),
              "\"msg\":\"m\",\"err\":{\"type\":\"srv.Error\",\"message\":\"no row in articles\","
              "\"code\":\"no_row\",\"status\":404}}");
    CHECK_STR(line_of("err.cause = 'disk' err.trace = 'stack' log.error(err, { id = 1 })"),
              "\"msg\":\"no row in articles\",\"err\":{\"type\":\"srv.Error\","
              "\"message\":\"no row in articles\",\"code\":\"no_row\",\"status\":404,"
              "\"stack\":\"stack\",\"cause\":\"disk\"},\"id\":1}");
    close_vm();
}

TEST(values_are_bounded_in_depth_width_and_size)
{
    open_vm();
    CHECK(strstr(line_of("local t = {} t.t = t log.info('m', { t = t })"), "\"t\":\"{...}\"}"));
    CHECK(strstr(line_of("local t = {} for i = 1, 150 do t[i] = i end log.info('m', { t = t })"),
                 ",100,\"... 50 more\"]}"));
    CHECK(strstr(
        line_of("local t = {} for i = 1, 100 do t['k' .. i] = i end log.info('m', { t = t })"),
        ",\"...\":\"36 more\"}}"));
    CHECK_STR(line_of("local s = ('x'):rep(1000) local t = {} for i = 1, 50 do t[i] = s end "
                      "log.info('m', { t = t })"),
              "\"msg\":\"m\",\"t\":\"(too large)\"}");
    CHECK(strlen(line_of("log.info(('x'):rep(100000), { s = ('y'):rep(100000) })")) <
          LOG_PAYLOAD_MAX + 200);
    close_vm();
}

TEST(no_code_of_the_app_runs_while_a_line_is_made)
{
    open_vm();
    CHECK_STR(line_of("local t = setmetatable({ a = 1 }, { __index = error, __tostring = error,"
                      " __len = error }) log.info('m', { t = t })"),
              "\"msg\":\"m\",\"t\":{\"a\":1}}");
    close_vm();
}

TEST(print_logs_its_values_with_tabs)
{
    open_vm();
    CHECK_STR(line_of("print(1, nil, 'a', true)"), "\"msg\":\"1\\tnil\\ta\\ttrue\"}");
    CHECK_STR(line_of("print()"), "\"msg\":\"\"}");
    close_vm();
}

TEST(misuse_is_an_error)
{
    open_vm();
    run("assert(not pcall(log.info))");
    run("assert(not pcall(log.info, 'm', 'fields'))");
    run("assert(not pcall(log.with))");
    run("assert(not pcall(log.wants, 'loud'))");
    run("assert(log.warning == nil)");
    close_vm();
}

TEST(a_tap_hears_every_line)
{
    open_vm();
    run("heard = {} log.tap(function(...) heard[#heard + 1] = { ... } end)"
        "log.debug('m', { a = 1 }) print('x', 1) log.with { b = 2 }.info('n') log.tap(nil)"
        "log.info 'unheard'");
    run("assert(#heard == 3 and heard[1][1] == 'debug' and heard[1][2] == 'm' and heard[1][3].a == 1)");
    run("assert(heard[2][1] == 'info' and heard[2][2] == 'x\\t1' and heard[3][2] == 'n')");
    close_vm();
}

int main(void)
{
    int fd = mkstemp(path), status;

    if (fd < 0)
        return 1;
    close(fd);
    status = check_run();
    unlink(path);
    return status;
}
