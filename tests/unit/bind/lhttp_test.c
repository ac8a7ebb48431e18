/* Requests to Lua on a wire that keeps nothing but the last answer: what they cost in Lua memory,
 * and that every one of them is answered. */
#include "bind/lhttp.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lsite.h"
#include "bind/script.h"
#include "ev/loop.h"
#include "http/exchange.h"
#include "http/route.h"
#include "vm/sched.h"
#include "vm/task.h"
#include "vm/vm.h"

#include "support/check.h"

static struct {
    struct loop      *loop;
    struct sched     *sched;
    struct vm        *vm;
    struct arena_pool arenas;
    struct env        env;
    struct lsite     *site;
    unsigned          finished;
    unsigned          status; /* of the last that finished */
} host;

/* --- the wire ----------------------------------------------------------------------------------- */

static struct {
    unsigned status;
    char     body[512];
    size_t   body_len;
} last;

static void note_body(const void *at, size_t len)
{
    if (last.body_len + len < sizeof(last.body))
        memcpy(last.body + last.body_len, at, len);
    last.body_len += len;
}

static int wire_head(struct exchange *ex, const struct answer *answer, uint64_t length)
{
    last.status      = answer->status;
    last.body_len    = 0;
    ex->answer_state = ANSWER_BODY;
    return 0;
}

static ssize_t wire_body(struct exchange *ex, const struct iovec *iov, int count)
{
    size_t len = iov->iov_len < 1000 ? iov->iov_len : 1000;

    ex->sent_bytes += len;
    note_body(iov->iov_base, len);
    return (ssize_t)len;
}

static int wire_end(struct exchange *ex, const struct field *trailers, unsigned count)
{
    ex->answer_state = ANSWER_ENDED;
    loop_break(host.loop);
    return 0;
}

static int wire_answer(struct exchange *ex, const struct answer *answer, struct str body)
{
    wire_head(ex, answer, body.len);
    note_body(body.at, body.len);
    return wire_end(ex, NULL, 0);
}

static void wire_abort(struct exchange *ex, enum gone_why why)
{
    ex->answer_state = ANSWER_ABORTED;
}

static void wire_nothing(struct exchange *ex)
{
}

static const struct exchange_wire WIRE = {
    .head      = wire_head,
    .body      = wire_body,
    .end       = wire_end,
    .answer    = wire_answer,
    .abort     = wire_abort,
    .want      = wire_nothing,
    .work_gone = wire_nothing,
};

/* --- an app ---------------------------------------------------------------------------------------- */

static const char APP[] =
    "local srv = require 'srv'\n"
    "local app = srv.app()\n"
    "app:get('/', function() return 'hello' end)\n"
    "app:get('/users/:id', function(req) return { id = req.params.id } end)\n"
    /* What the JIT cannot record: closures, and debug.* */
    "app:get('/bad', function() local f = function() return debug.getinfo(1) end f() return 'bad' end)\n"
    "app:get('/large', function() return ('x'):rep(100000) end)\n"
    "app:get('/wait', function() srv.sleep(0.001) return 'waited' end)\n"
    "app:get('/boom', function() error 'boom' end)\n"
    "app:get('/stack', srv.helmet(), srv.cors(), srv.compress(), function() return 'stack' end)\n"
    "app:get('/hang', { timeout = '20ms' }, function() srv.sleep(60) end)\n"
    "return require 'srv.web.app'.install(app, 'the test')\n";

static void end_load(struct vm *vm)
{
    loop_break(host.loop);
}

static const struct vm_hooks HOOKS = { .push_error = script_push_error,
                                       .report     = script_report,
                                       .on_drained = end_load };

static void on_finished(const struct lhttp_finished *finished, void *arg)
{
    host.finished++;
    host.status = finished->status;
}

static int prepare(lua_State *co, struct task *task, void *arg)
{
    if (luaL_loadbuffer(co, APP, sizeof(APP) - 1, "=app.lua") != 0)
        lua_error(co);
    return 0;
}

static void on_loaded(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    if (how != TASK_RETURNED) {
        task_push_failure(co, task);
        fprintf(stderr, "%s\n", lua_tostring(co, -1));
        return;
    }
    host.site = lsite_check(co, -1);
    lua_setfield(co, LUA_REGISTRYINDEX, "test.site");
}

static void open_host(void)
{
    struct lhttp_options options = { .timeout_ms = 30000, .on_finished = on_finished };
    struct vm_options    vm      = { .memory_bytes = 256u << 20, .hooks = &HOOKS };
    struct task_spec     spec    = { .prepare = prepare, .on_end = on_loaded, .label = "load" };
    struct err           err     = { 0 };
    int                  rc      = loop_open(&host.loop, &err);

    if (rc == 0)
        rc = sched_open(&host.sched, host.loop, 0, &err);
    arena_pool_init(&host.arenas, 64);
    options.loop = host.loop;
    host.env     = (struct env){ .loop         = host.loop,
                                 .sched        = host.sched,
                                 .arenas       = &host.arenas,
                                 .http         = lhttp_new(&options),
                                 .request_id   = lhttp_request_id,
                                 .app_root     = ".",
                                 .worker_count = 1 };
    if (rc == 0)
        rc = vm_open(&host.vm, host.sched, &vm, &err);
    if (rc == 0)
        rc = script_open(host.vm, &host.env, &err);
    if (rc == 0 && task_start(host.vm, &spec))
        loop_run(host.loop);
    if (rc != 0 || !host.site) {
        fprintf(stderr, "no app: %s\n", err.text);
        exit(1);
    }
    lhttp_switch(host.env.http, host.site);
}

static void close_host(void)
{
    vm_abandon_tasks(host.vm);
    vm_close(host.vm);
    lhttp_free(host.env.http);
    sched_close(host.sched);
    loop_close(host.loop);
    arena_pool_fini(&host.arenas);
}

/* --- requests ------------------------------------------------------------------------------------------ */

static struct exchange *begin(const char *path)
{
    struct exchange *ex = exchange_new(host.loop, &host.arenas, &WIRE, NULL);

    ex->request.method    = STR("GET");
    ex->request.method_id = ROUTE_GET;
    ex->request.target = ex->request.path = str_of(path);
    ex->request_state                     = REQUEST_ENDED;
    request_index_fields(&ex->request);
    last.status   = 0;
    last.body_len = 0;
    lhttp_dispatch(ex, host.env.http);
    return ex;
}

/* The wire's last word; the call is over then. */
static void end(struct exchange *ex)
{
    if (ex->work)
        ex->work->on_sent(ex);
    exchange_wire_let_go(ex);
}

static void request(const char *path)
{
    end(begin(path));
}

static void repeat(const char *path, unsigned times)
{
    while (times--)
        request(path);
}

/* Lua bytes that N requests leave behind, with the collector at rest. */
static size_t garbage(const char *path, unsigned times)
{
    lua_State *L = host.vm->L;
    size_t     before;

    lua_gc(L, LUA_GCCOLLECT, 0);
    lua_gc(L, LUA_GCSTOP, 0);
    repeat(path, 10);
    before = host.vm->heap.used;
    repeat(path, times);
    before = host.vm->heap.used - before;
    lua_gc(L, LUA_GCRESTART, 0);
    return before;
}

TEST(text_and_json_are_answered_at_once)
{
    request("/");
    CHECK_INT(last.status, 200);
    CHECK_MEM(last.body, last.body_len, "hello", 5);
    request("/users/7");
    CHECK_MEM(last.body, last.body_len, "{\"id\":\"7\"}", 10);
    CHECK_INT(host.site->call_count, 0);
}

/* Only a compiled runner does without the tables of req and res, so this says both. */
TEST(hello_leaves_no_lua_garbage)
{
    repeat("/", 500);
    CHECK_INT(garbage("/", 1000), 0);
}

/* The views of req and res, which the hooks get, and nothing else. */
TEST(headers_of_plugins_leave_next_to_no_garbage)
{
    enum { TIMES = 1000, VIEWS_BYTES_MAX = 192 };

    repeat("/stack", 3000);
    CHECK_MEM(last.body, last.body_len, "stack", 5);
    CHECK(garbage("/stack", TIMES) <= TIMES * VIEWS_BYTES_MAX);
}

TEST(a_route_that_the_jit_cannot_take_spoils_no_other)
{
    repeat("/bad", 3000);
    CHECK_MEM(last.body, last.body_len, "bad", 3);
    repeat("/", 500);
    CHECK_INT(garbage("/", 1000), 0);
}

TEST(a_long_answer_goes_out_as_the_wire_has_room)
{
    request("/large");
    CHECK_INT(last.status, 200);
    CHECK_INT(last.body_len, 100000);
}

TEST(an_error_is_a_500_and_the_next_request_is_fine)
{
    request("/boom");
    CHECK_INT(last.status, 500);
    request("/");
    CHECK_INT(last.status, 200);
}

TEST(a_handler_that_waits_is_answered_later)
{
    struct exchange *ex = begin("/wait");

    CHECK_INT(last.status, 0);
    CHECK_INT(host.site->call_count, 1);
    while (last.status == 0)
        loop_run(host.loop);
    CHECK_MEM(last.body, last.body_len, "waited", 6);
    end(ex);
    CHECK_INT(host.site->call_count, 0);
}

static void end_wait(struct lsite *site, void *arg)
{
    loop_break(host.loop);
}

TEST(a_client_that_leaves_cancels_the_work)
{
    struct exchange *ex       = begin("/wait");
    unsigned         finished = host.finished;

    host.site->on_idle = end_wait;
    exchange_wire_lost(ex, GONE_CLIENT);
    loop_run(host.loop);
    host.site->on_idle = NULL;
    CHECK_INT(host.site->call_count, 0);
    CHECK_INT(host.finished, finished + 1);
    CHECK_INT(host.status, 499);
}

TEST(without_a_site_it_is_503)
{
    struct lsite *site = lhttp_switch(host.env.http, NULL);

    request("/");
    CHECK_INT(last.status, 503);
    lhttp_switch(host.env.http, site);
}

int main(void)
{
    int status;

    open_host();
    status = check_run();
    close_host();
    return status;
}
