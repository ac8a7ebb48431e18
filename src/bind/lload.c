#include "bind/lload.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <lauxlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lhist.h"
#include "bind/ltask.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "http/message.h"
#include "load/load.h"
#include "vm/task.h"
#include "vm/waitq.h"

#define LOAD_METATABLE "srv.core.Load"

/* The last thread of the load posts the message, which may outlive the object: so it is memory of its
 * own, with a link that the object cuts. */
struct lload;
struct over {
    struct message message;
    struct inbox  *inbox;
    struct lload  *owner; /* NULL: collected. The loop's thread. */
};

/* Its environment is the plan, whose texts the load borrows. */
struct lload {
    struct load         *load;
    struct over         *over; /* NULL: it has come */
    bool                 is_over;
    struct waitq         waiters;
    struct load_origin  *origins;
    struct load_request *requests;
    uint32_t            *ids;    /* of all requests, one after the other */
    struct field        *fields; /* the same */
    unsigned            *wheel;
};

static const char *const FAULT_NAMES[LOAD_FAULTS] = {
    [LOAD_REFUSED]         = "refused",
    [LOAD_CONNECT_TIMEOUT] = "connect_timeout",
    [LOAD_RESET]           = "reset",
    [LOAD_CLOSED]          = "closed",
    [LOAD_TIMEOUT]         = "timeout",
    [LOAD_MALFORMED]       = "malformed",
    [LOAD_TLS]             = "tls",
    [LOAD_STREAM_REFUSED]  = "stream_refused",
    [LOAD_STREAM_RESET]    = "stream_reset",
};

/* --- the plan ------------------------------------------------------------------------------------- */

/* What is allocated belongs to LLOAD at once, so an error leaves nothing behind. */
static void *array(lua_State *L, size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);

    if (!memory)
        luaL_error(L, "not enough memory");
    return memory;
}

/* Pushes plan[name]. */
static unsigned push_list(lua_State *L, int plan, const char *name)
{
    lua_getfield(L, plan, name);
    luaL_checktype(L, -1, LUA_TTABLE);
    return (unsigned)lua_objlen(L, -1);
}

static void read_origin(lua_State *L, struct load_origin *origin)
{
    struct str path = lfield_str(L, -1, "path"), host = lfield_str(L, -1, "host");
    struct err err;
    int        rc;

    if (path.at)
        rc = addr_parse_path(&origin->addr, path.at, &err);
    else
        rc = addr_parse_host(&origin->addr, host.at ? host.at : "",
                             (uint16_t)lfield_number(L, -1, "port"), &err);
    if (rc != 0)
        luaL_error(L, "%s", err.text);
    origin->has_tls = lfield_bool(L, -1, "tls");
    origin->name    = lfield_str(L, -1, "name");
}

/* Of the list NAME of the table on top, which may be missing. */
static unsigned count_list(lua_State *L, const char *name)
{
    unsigned count;

    lua_getfield(L, -1, name);
    count = lua_istable(L, -1) ? (unsigned)lua_objlen(L, -1) : 0;
    lua_pop(L, 1);
    return count;
}

/* The request on top; its ids go to IDS. */
static void read_ids(lua_State *L, struct load_request *request, uint32_t *ids)
{
    request->ids      = ids;
    request->id_count = count_list(L, "ids");
    lua_getfield(L, -1, "ids");
    for (unsigned i = 0; i < request->id_count; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        ids[i] = (uint32_t)lua_tonumber(L, -1);
        lua_pop(L, 1);
        if (ids[i] + (size_t)LOAD_ID_BYTES > request->bytes.len)
            luaL_error(L, "an id lies outside of its request");
    }
    lua_pop(L, 1);
}

/* The next LEN bytes of a request. */
static struct str read_span(lua_State *L, const struct load_request *request, int index, size_t *at)
{
    struct str span;

    lua_rawgeti(L, -1, index);
    span = str_make(request->bytes.at + *at, (size_t)lua_tonumber(L, -1));
    lua_pop(L, 1);
    if (span.len > request->bytes.len - *at)
        luaL_error(L, "a field lies outside of its request");
    *at += span.len;
    return span;
}

/* `fields`: the lengths of name, value, name, ... of which `bytes` consists before the body. */
static void read_fields(lua_State *L, struct load_request *request, struct field *fields)
{
    request->fields      = fields;
    request->field_count = count_list(L, "fields") / 2;
    if (request->field_count > LOAD_FIELDS_MAX)
        luaL_error(L, "a request has %d fields: %d are possible", (int)request->field_count,
                   (int)LOAD_FIELDS_MAX);
    request->body_at = (size_t)lfield_number(L, -1, "head");
    if (request->body_at > request->bytes.len)
        luaL_error(L, "a head is longer than its request");
    lua_getfield(L, -1, "fields");
    for (unsigned i = 0; i < request->field_count; i++) {
        fields[i].name  = read_span(L, request, (int)i * 2 + 1, &request->body_at);
        fields[i].value = read_span(L, request, (int)i * 2 + 2, &request->body_at);
    }
    lua_pop(L, 1);
}

/* The request on top; its ids and fields go to IDS and FIELDS. */
static void read_request(lua_State *L, struct load_request *request, uint32_t *ids,
                         struct field *fields)
{
    request->bytes       = lfield_str(L, -1, "bytes");
    request->origin      = (unsigned)lfield_number(L, -1, "origin") - 1;
    request->is_head     = lfield_bool(L, -1, "is_head");
    request->expect      = lfield_str(L, -1, "expect");
    request->checks_body = request->expect.at != NULL;
    read_ids(L, request, ids);
    read_fields(L, request, fields);
}

static void read_origins(lua_State *L, int table, struct lload *lload, struct load_plan *plan)
{
    plan->origin_count = push_list(L, table, "origins");
    plan->origins = lload->origins = array(L, plan->origin_count, sizeof(struct load_origin));
    for (unsigned i = 0; i < plan->origin_count; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        read_origin(L, &lload->origins[i]);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* Of all requests in the list on top. */
static unsigned count_all(lua_State *L, unsigned requests, const char *name)
{
    unsigned count = 0;

    for (unsigned i = 0; i < requests; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        count += count_list(L, name);
        lua_pop(L, 1);
    }
    return count;
}

static void read_requests(lua_State *L, int table, struct lload *lload, struct load_plan *plan)
{
    uint32_t     *ids;
    struct field *fields;

    plan->request_count = push_list(L, table, "requests");
    plan->requests = lload->requests = array(L, plan->request_count, sizeof(struct load_request));
    ids = lload->ids = array(L, count_all(L, plan->request_count, "ids"), sizeof(*ids));
    fields = lload->fields = array(L, count_all(L, plan->request_count, "fields"), sizeof(*fields));
    for (unsigned i = 0; i < plan->request_count; i++) {
        struct load_request *request = &lload->requests[i];

        lua_rawgeti(L, -1, (int)i + 1);
        read_request(L, request, ids, fields);
        ids += request->id_count;
        fields += request->field_count;
        lua_pop(L, 1);
        if (request->origin >= plan->origin_count)
            luaL_error(L, "request %d has no origin", (int)i + 1);
    }
    lua_pop(L, 1);
}

static void read_wheel(lua_State *L, int table, struct lload *lload, struct load_plan *plan)
{
    plan->wheel_len = push_list(L, table, "wheel");
    if (plan->wheel_len == 0 || plan->wheel_len > LOAD_WHEEL_MAX)
        luaL_error(L, "the weights of requests add up to %d: 1 to %d are possible",
                   (int)plan->wheel_len, (int)LOAD_WHEEL_MAX);
    plan->wheel = lload->wheel = array(L, plan->wheel_len, sizeof(unsigned));
    for (unsigned i = 0; i < plan->wheel_len; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        lload->wheel[i] = (unsigned)lua_tonumber(L, -1) - 1;
        lua_pop(L, 1);
        if (lload->wheel[i] >= plan->request_count)
            luaL_error(L, "the wheel names a request that is not there");
    }
    lua_pop(L, 1);
}

static unsigned check_range(lua_State *L, int table, const char *name, unsigned most)
{
    lua_Number number = lfield_number(L, table, name);

    if (!(number >= 1 && number <= most))
        luaL_error(L, "%s must be 1 to %d", name, (int)most);
    return (unsigned)number;
}

static const char *file_name(lua_State *L, int table, const char *name)
{
    return lfield_str(L, table, name).at;
}

static void read_tls(lua_State *L, int table, struct load_tls *tls)
{
    lua_getfield(L, table, "tls");
    if (lua_istable(L, -1))
        *tls = (struct load_tls){
            .ca             = file_name(L, lua_gettop(L), "ca"),
            .cert           = file_name(L, lua_gettop(L), "cert"),
            .key            = file_name(L, lua_gettop(L), "key"),
            .trusts_all     = lfield_bool(L, -1, "insecure"),
            .is_always_full = lfield_bool(L, -1, "full"),
        };
    lua_pop(L, 1);
}

static void read_numbers(lua_State *L, int table, struct load_plan *plan)
{
    plan->connections = check_range(L, table, "connections", LOAD_CONNECTIONS_MAX);
    plan->threads     = check_range(L, table, "threads", LOAD_THREADS_MAX);
    plan->pipelining  = check_range(L, table, "pipelining", LOAD_PIPELINING_MAX);
    if (plan->threads > plan->connections)
        plan->threads = plan->connections;
    plan->duration_ms    = (uint64_t)(lfield_number(L, table, "duration") * 1000);
    plan->timeout_ms     = (uint64_t)(lfield_number(L, table, "timeout") * 1000);
    plan->amount         = (uint64_t)lfield_number(L, table, "amount");
    plan->rate           = lfield_number(L, table, "rate");
    plan->per_connection = (uint64_t)lfield_number(L, table, "per_connection");
    plan->reconnect      = (uint64_t)lfield_number(L, table, "reconnect");
    plan->only_ok        = lfield_bool(L, table, "only_ok");
    plan->speech         = lfield_bool(L, table, "http2")       ? LOAD_SPEAKS_H2
                           : lfield_bool(L, table, "websocket") ? LOAD_SPEAKS_WS
                                                                : LOAD_SPEAKS_H1;
    plan->is_binary      = lfield_bool(L, table, "binary");
    plan->bailout        = (uint64_t)lfield_number(L, table, "bailout");
}

/* --- its end ---------------------------------------------------------------------------------------- */

static void deliver_over(struct message *message)
{
    struct over *over = container_of(message, struct over, message);

    if (over->owner) {
        over->owner->over    = NULL;
        over->owner->is_over = true;
        waitq_wake_all(&over->owner->waiters);
    }
    free(over);
}

static void drop_over(struct message *message)
{
    free(container_of(message, struct over, message));
}

/* On a thread of the load. */
static void on_over(void *arg)
{
    struct over *over = arg;

    inbox_post(over->inbox, &over->message);
}

/* --- methods ------------------------------------------------------------------------------------------ */

static struct lload *check_load(lua_State *L)
{
    return luaL_checkudata(L, 1, LOAD_METATABLE);
}

/* start(plan) -> load | nil, err */
static int lload_start(lua_State *L)
{
    struct lload    *lload;
    struct load_plan plan = { 0 };
    struct err       err;

    luaL_checktype(L, 1, LUA_TTABLE);
    lload = lclass_new(L, LOAD_METATABLE, sizeof(*lload));
    waitq_init(&lload->waiters);
    lua_pushvalue(L, 1);
    lua_setfenv(L, -2);
    read_origins(L, 1, lload, &plan);
    read_requests(L, 1, lload, &plan);
    read_wheel(L, 1, lload, &plan);
    read_numbers(L, 1, &plan);
    read_tls(L, 1, &plan.tls);
    lload->over  = array(L, 1, sizeof(*lload->over));
    *lload->over = (struct over){ .message = { .deliver = deliver_over, .drop = drop_over },
                                  .inbox   = loop_inbox(env_of(L)->loop),
                                  .owner   = lload };
    if (load_start(&lload->load, &plan, on_over, lload->over, &err) == 0)
        return 1;
    free(lload->over);
    lload->over = NULL;
    return lerror_nil_err(L, NULL, &err);
}

static void push_faults(lua_State *L, const struct load_totals *totals)
{
    lua_createtable(L, 0, LOAD_FAULTS);
    for (int i = 0; i < LOAD_FAULTS; i++)
        lfield_set_number(L, FAULT_NAMES[i], (lua_Number)totals->faults[i]);
}

static void push_statuses(lua_State *L, const struct load_totals *totals)
{
    lua_newtable(L);
    for (int i = 0; i < LOAD_STATUSES; i++) {
        if (!totals->statuses[i])
            continue;
        lua_pushnumber(L, (lua_Number)totals->statuses[i]);
        lua_rawseti(L, -2, i);
    }
}

/* load:read() -> { elapsed, sent, ..., statuses, faults, latency, service } */
static int lload_read(lua_State *L)
{
    struct lload      *lload  = check_load(L);
    struct load_totals totals = { 0 };

    lua_newtable(L);
    totals.latency = lhist_push(L);
    lua_setfield(L, -2, "latency");
    totals.service = lhist_push(L);
    lua_setfield(L, -2, "service");
    load_read(lload->load, &totals);
    lfield_set_number(L, "elapsed", (lua_Number)totals.elapsed_ns / 1e9);
    lfield_set_number(L, "sent", (lua_Number)totals.sent);
    lfield_set_number(L, "mismatched", (lua_Number)totals.mismatched);
    lfield_set_number(L, "late", (lua_Number)totals.late);
    lfield_set_number(L, "backlog", (lua_Number)totals.backlog);
    lfield_set_number(L, "connections", (lua_Number)totals.connections);
    lfield_set_number(L, "unasked", (lua_Number)totals.unasked);
    lfield_set_number(L, "cpu", (lua_Number)totals.cpu_ns / 1e9);
    lfield_set_number(L, "bytes_in", (lua_Number)totals.bytes_in);
    lfield_set_number(L, "bytes_out", (lua_Number)totals.bytes_out);
    push_statuses(L, &totals);
    lua_setfield(L, -2, "statuses");
    push_faults(L, &totals);
    lua_setfield(L, -2, "faults");
    return 1;
}

/* It is over: true | nil, err */
static int push_over(lua_State *L, void *op)
{
    struct err err;

    if (load_failure(check_load(L)->load, &err) != 0)
        return lerror_nil_err(L, NULL, &err);
    lua_pushboolean(L, true);
    return 1;
}

/* load:wait([seconds]) -> true | nil, err */
static int lload_wait(lua_State *L)
{
    struct lload *lload = check_load(L);

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    if (lload->is_over)
        return push_over(L, NULL);
    return waitq_wait(L, &lload->waiters, push_over, ltask_timeout_ms(L, 2), ltask_push_timeout,
                      NULL, NULL);
}

/* load:stop() -> load */
static int lload_stop(lua_State *L)
{
    load_stop(check_load(L)->load);
    lua_settop(L, 1);
    return 1;
}

static int lload_gc(lua_State *L)
{
    struct lload *lload = check_load(L);

    load_free(lload->load);
    if (lload->over) /* posted by now, or never made use of */
        lload->over->owner = NULL;
    if (lload->over && !lload->load)
        free(lload->over);
    free(lload->origins);
    free(lload->requests);
    free(lload->ids);
    free(lload->fields);
    free(lload->wheel);
    return 0;
}

int lload_open(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "read", lload_read }, { "wait", lload_wait }, { "stop", lload_stop },
        { "__gc", lload_gc },   { NULL, NULL },
    };
    static const luaL_Reg FUNCTIONS[] = { { "start", lload_start }, { NULL, NULL } };

    lhist_register(L);
    lclass_add(L, LOAD_METATABLE, METHODS);
    lua_newtable(L);
    luaL_register(L, NULL, FUNCTIONS);
    return 1;
}
