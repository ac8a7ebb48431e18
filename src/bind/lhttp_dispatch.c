#include "bind/lhttp_dispatch.h"

#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "base/log.h"
#include "bind/lanswer.h"
#include "bind/lbody.h"
#include "bind/lbody_decode.h"
#include "bind/lcall.h"
#include "bind/lcoding.h"
#include "bind/lhead.h"
#include "bind/lhttp_state.h"
#include "bind/lrecord.h"
#include "bind/lrequest.h"
#include "bind/lsite.h"
#include "ev/loop.h"
#include "vm/task.h"

enum { LATE_MS = 5000 }; /* for the answer to a missed deadline, hooks */

/* --- the end of a call ----------------------------------------------------------------------------------- */

static void tell_finished(struct lcall *call)
{
    const struct lhttp_options *options = &call->http->options;
    struct exchange            *ex      = call->ex;
    struct lhttp_finished       finished;

    if (call->told || !options->on_finished)
        return;
    call->told = true;
    finished   = (struct lhttp_finished){
          .ex     = ex,
          .route  = call->route ? call->route->label : "",
          .status = ex->answer_status ? ex->answer_status : 499,
          .kept   = call->route ? &call->route->kept : NULL,
          .call   = call,
    };
    options->on_finished(&finished, options->arg);
}

struct str lhttp_finished_id(const struct lhttp_finished *finished)
{
    return lcall_id(finished->call);
}

static void leave_site(struct lcall *call)
{
    struct lsite *site = call->site;

    for (int anchor = 0; call->anchors && anchor < ANCHOR_COUNT; anchor++)
        lcall_forget(site->vm->L, call, (enum lcall_anchor)anchor);
    list_remove(&call->of_site);
    lsite_call_ended(site);
}

/* A call is over when its tasks are and the wire has said its last word. */
static void settle(struct lcall *call)
{
    struct exchange *ex = call->ex;

    if (call->tasks || !(call->sent || call->gone))
        return;
    tell_finished(call);
    if (call->site)
        leave_site(call);
    lanswer_close_file(call);
    lcoding_drop(call);
    lbody_decode_drop(call);
    lcall_give(call->http->calls, call);
    exchange_work_let_go(ex);
}

/* --- tasks --------------------------------------------------------------------------------------------------- */

static void runner_over(struct task *task, enum task_end how, lua_State *co, void *arg);

/* The last task of a call has ended: if nothing was answered until now, nothing will. */
static void task_over(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct lcall *call = arg;

    if (call->task == task)
        call->task = NULL;
    call->tasks--;
    if (call->tasks == 0 && !call->ended && !call->rest.len)
        lanswer_plain(call, 500);
    settle(call);
}

static int prepare_entry(lua_State *co, struct task *task, void *arg)
{
    struct lcall *call = arg;

    lua_rawgeti(co, LUA_REGISTRYINDEX, call->next_ref);
    lua_pushnumber(co, lcall_number(call));
    return 1;
}

/* Hooks that nobody waits for. */
static void run_hooks(struct lcall *call, enum lsite_entry entry)
{
    call->next_ref = call->site->entry_refs[entry];
    call->tasks++;
    task_start(call->site->vm, &(struct task_spec){ .prepare     = prepare_entry,
                                                    .on_end      = task_over,
                                                    .arg         = call,
                                                    .label       = lcall_label(call),
                                                    .deadline_ms = LATE_MS });
}

/* --- answers to cancelled runners -------------------------------------------------------------------------- */

static bool is_deadline(const struct lcall *call)
{
    return strcmp(call->reason, "deadline") == 0;
}

static int prepare_late(lua_State *co, struct task *task, void *arg)
{
    struct lcall *call = arg;

    lua_rawgeti(co, LUA_REGISTRYINDEX, call->site->entry_refs[ENTRY_LATE]);
    lua_pushnumber(co, lcall_number(call));
    lua_pushstring(co, is_deadline(call) ? "deadline" : "unavailable");
    lua_pushstring(co, is_deadline(call) ? "no answer within the time limit" : call->reason);
    return 3;
}

static void late_over(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    if (how == TASK_RETURNED)
        runner_over(task, how, co, arg);
    else
        lanswer_plain(arg, 503);
}

/* The runner was cancelled before the head was out: formatters and hooks make the answer in a fresh
 * task (CORE, decision 6). */
static void answer_late(struct lcall *call, const char *reason)
{
    if (call->ended || call->gone)
        return;
    if (call->committed && call->events && strcmp(reason, "shutdown") == 0) {
        lanswer_end(call, NULL, 0);
        return;
    }
    log_warn("request cancelled", "route=%s reason=%s reqId=%.*s", lcall_label(call), reason,
             STR_ARG(lcall_id(call)));
    if (call->committed) {
        lanswer_abort(call);
        return;
    }
    call->reason  = reason;
    call->failing = true;
    call->tasks++;
    task_start(call->site->vm, &(struct task_spec){ .prepare     = prepare_late,
                                                    .on_result   = late_over,
                                                    .on_end      = task_over,
                                                    .arg         = call,
                                                    .label       = lcall_label(call),
                                                    .deadline_ms = LATE_MS,
                                                    .no_cancel   = true });
}

/* --- answers of runners --------------------------------------------------------------------------------------- */

/* Goes on in Lua, in the same task. CODE and MESSAGE may lie on CO. */
static void fail(struct task *task, lua_State *co, struct lcall *call, const char *code,
                 const char *message)
{
    int returned = lua_gettop(co);

    if (call->failing) { /* the error's answer has failed too */
        log_error("error answer failed", "route=%s message=%s", lcall_label(call), message);
        lanswer_plain(call, 500);
        return;
    }
    call->failing = true;
    lua_rawgeti(co, LUA_REGISTRYINDEX, call->site->entry_refs[ENTRY_FAIL]);
    lua_pushnumber(co, lcall_number(call));
    lua_pushstring(co, code);
    lua_pushstring(co, message);
    while (returned-- > 0)
        lua_remove(co, 1);
    task_continue(task, co, 3, runner_over);
}

/* A __tojson stands in the recorded value: Lua makes plain data of it and records that. */
static void resolve(struct task *task, lua_State *co, struct lcall *call, int index)
{
    lua_pushvalue(co, index);
    lua_replace(co, 1);
    lua_settop(co, 1);
    lua_rawgeti(co, LUA_REGISTRYINDEX, call->site->entry_refs[ENTRY_RESOLVE]);
    lua_insert(co, 1);
    lua_pushnumber(co, lcall_number(call));
    lua_insert(co, 2);
    task_continue(task, co, 2, runner_over);
}

static void send_value(struct task *task, lua_State *co, struct lcall *call, int index)
{
    struct err err;

    switch (lanswer_send(call, co, index, &err)) {
    case LANSWER_SENT: return;
    case LANSWER_CALLS: resolve(task, co, call, index); return;
    case LANSWER_MISUSE:
        lanswer_drop(call, co);
        fail(task, co, call, err.code == ERR_TOO_LARGE ? "too_large" : "bad_answer", err.text);
        return;
    }
}

/* The plain values of a bare runner: text or a table, perhaps a status, perhaps headers. */
static void answer_returned(struct task *task, lua_State *co, struct lcall *call)
{
    struct err err;
    int        rc = 0;

    if (call->recorded != RECORDED_NOTHING) {
        fail(task, co, call, "answered_twice", lrecord_push_twice(call, co));
        return;
    }
    if (!lua_isnoneornil(co, 2))
        rc = lhead_set_status(call, co, 2, &err);
    if (rc == 0 && !lua_isnoneornil(co, 3)) {
        if (lua_istable(co, 3))
            rc = lhead_set_table(call, co, 3, &err);
        else
            rc = err_set(&err, ERR_INVALID, "the third value of a handler is a table of headers");
    }
    if (rc < 0) {
        fail(task, co, call, "bad_answer", err.text);
        return;
    }
    call->recorded = lua_type(co, 1) == LUA_TSTRING ? RECORDED_TEXT : RECORDED_JSON;
    send_value(task, co, call, 1);
}

static void answer_recorded(struct task *task, lua_State *co, struct lcall *call)
{
    if (call->committed) {
        if (!call->ended)
            lanswer_end(call, NULL, 0);
        return;
    }
    if (call->recorded == RECORDED_NOTHING && call->status == 0) {
        fail(task, co, call, "no_answer", "nothing was answered");
        return;
    }
    lua_settop(co, 0);
    lcall_push_kept(co, call, ANCHOR_RECORDED);
    send_value(task, co, call, 1);
}

/* Runners catch what handlers raise, so this is memory, or a fault of srv's own. */
static void answer_raised(struct task *task, lua_State *co, struct lcall *call)
{
    task_push_traceback(co, task);
    log_error("runner failed", "route=%s message=%s trace=%s", lcall_label(call),
              lua_tostring(co, -2) ? lua_tostring(co, -2) : "?", lua_tostring(co, -1));
    lanswer_plain(call, 500);
}

static void runner_over(struct task *task, enum task_end how, lua_State *co, void *arg)
{
    struct lcall *call = arg;

    switch (how) {
    case TASK_RETURNED:
        if (!lua_isnoneornil(co, 1) && !call->committed)
            answer_returned(task, co, call);
        else
            answer_recorded(task, co, call);
        break;
    case TASK_RAISED: answer_raised(task, co, call); break;
    case TASK_CANCELLED: answer_late(call, task_reason(task)); break;
    }
}

/* --- from the wire ------------------------------------------------------------------------------------------------ */

static void on_sent(struct exchange *ex)
{
    struct lcall *call   = ex->work_data;
    bool          is_cut = ex->answer_state == ANSWER_ABORTED;

    call->sent = true;
    call->tasks++; /* holds it while we look */
    tell_finished(call);
    if (call->site && (is_cut ? call->wants_abort : call->wants_sent))
        run_hooks(call, is_cut ? ENTRY_ABORTED : ENTRY_SENT);
    call->tasks--;
    settle(call);
}

static void on_gone(struct exchange *ex, enum gone_why why)
{
    struct lcall *call = ex->work_data;

    call->gone = true;
    call->tasks++;      /* holds it while we look */
    lanswer_room(call); /* a writer hears of it; nothing is left to send */
    lbody_came(call);
    if (call->task && !call->finishes)
        task_cancel(call->task, why == GONE_SHUTDOWN ? "shutdown" : "client gone");
    if (call->wants_abort && call->site && !call->sent)
        run_hooks(call, ENTRY_ABORTED);
    call->tasks--;
    settle(call);
}

static void on_room(struct exchange *ex)
{
    lanswer_room(ex->work_data);
}

static void on_body(struct exchange *ex)
{
    lbody_came(ex->work_data);
}

static const struct exchange_work WORK = {
    .on_body     = on_body,
    .on_body_end = on_body,
    .on_room     = on_room,
    .on_sent     = on_sent,
    .on_gone     = on_gone,
};

static void refuse(struct exchange *ex)
{
    static const char TEXT[] =
        "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503}";
    struct answer answer = { .status = 503, .content_type = STR("application/problem+json") };

    exchange_answer(ex, &answer, str_make(TEXT, sizeof(TEXT) - 1));
    exchange_work_let_go(ex);
}

static struct lcall *take_call(struct lhttp *http, struct lsite *site, struct exchange *ex)
{
    struct lcall *call = lcall_take(http->calls);

    if (!call)
        return NULL;
    call->ex      = ex;
    call->http    = http;
    call->site    = site;
    ex->work      = &WORK;
    ex->work_data = call;
    list_append(&site->calls, &call->of_site);
    site->call_count++;
    return call;
}

static int prepare_runner(lua_State *co, struct task *task, void *arg)
{
    struct lcall *call = arg;

    call->task = task;
    if (call->found != ROUTE_FOUND)
        return prepare_entry(co, task, arg);
    lua_rawgeti(co, LUA_REGISTRYINDEX, call->route->runner_ref);
    lua_pushnumber(co, lcall_number(call));
    return 1 + lrequest_push_params(co, call);
}

static uint64_t time_limit(const struct lcall *call)
{
    if (call->route && call->route->timeout_ms)
        return call->route->timeout_ms;
    return call->http->options.timeout_ms;
}

void lhttp_dispatch_to(struct lhttp *http, struct lsite *site, struct exchange *ex)
{
    struct lcall *call = site ? take_call(http, site, ex) : NULL;

    if (!call) {
        refuse(ex);
        return;
    }
    lsite_match(site, call);
    if (call->route) {
        call->finishes    = call->route->finishes;
        call->wants_sent  = call->route->wants_sent;
        call->wants_abort = call->route->wants_abort;
        if (call->route->body_limit != UINT64_MAX)
            ex->body_limit = call->route->body_limit;
    }
    call->next_ref = site->entry_refs[ENTRY_UNMATCHED];
    call->tasks    = 1;
    task_start(site->vm, &(struct task_spec){ .prepare     = prepare_runner,
                                              .on_result   = runner_over,
                                              .on_end      = task_over,
                                              .arg         = call,
                                              .label       = lcall_label(call),
                                              .deadline_ms = time_limit(call) });
}

void lhttp_dispatch(struct exchange *ex, void *arg)
{
    struct lhttp *http = arg;

    lhttp_dispatch_to(http, http->site, ex);
}
