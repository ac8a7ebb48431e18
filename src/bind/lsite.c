#include "bind/lsite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/lclass.h"
#include "bind/lfield.h"
#include "bind/lhttp_state.h"
#include "bind/lpattern.h"
#include "bind/lstr.h"
#include "vm/task.h"

static const char METATABLE[] = "srv.Site";

enum { STOP_MS = 5000 }; /* for hooks `stop` */

/* --- making --------------------------------------------------------------------------------------- */

static void *must(lua_State *L, void *memory)
{
    if (!memory)
        luaL_error(L, "not enough memory");
    return memory;
}

/* The VM goes: calls that are still being sent know nothing of Lua any more. */
static void cut(struct handle *self)
{
    struct lsite *site = container_of(self, struct lsite, handle);

    list_each_safe(node, &site->calls)
    {
        struct lcall *call = container_of(node, struct lcall, of_site);

        assert(call->tasks == 0);
        list_remove(&call->of_site);
        call->site  = NULL;
        call->route = NULL;
    }
    if (site->http)
        lhttp_forget_site(site->http, site);
    site->vm = NULL;
}

struct lsite *lsite_check(lua_State *L, int index)
{
    return luaL_checkudata(L, index, METATABLE);
}

struct lsite *lsite_hold(lua_State *L, int index)
{
    struct lsite *site = lsite_check(L, index);

    if (site->own_ref == LUA_NOREF) {
        lua_pushvalue(L, index);
        site->own_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    site->holds++;
    return site;
}

static void forget_unheld(struct lsite *site)
{
    if (site->holds || site->call_count || site->own_ref == LUA_NOREF || !site->vm)
        return;
    luaL_unref(site->vm->L, LUA_REGISTRYINDEX, site->own_ref);
    site->own_ref = LUA_NOREF;
}

void lsite_let_go(struct lsite *site)
{
    site->holds--;
    forget_unheld(site);
}

void lsite_call_ended(struct lsite *site)
{
    site->call_count--;
    forget_unheld(site);
    if (site->call_count == 0 && site->on_idle)
        site->on_idle(site, site->on_idle_arg);
}

static struct lhost *add_host(lua_State *L, struct lsite *site)
{
    struct lhost *hosts = realloc(site->hosts, (site->host_count + 1) * sizeof(*hosts));
    struct lhost *host;

    site->hosts = must(L, hosts);
    host        = &site->hosts[site->host_count];
    *host       = (struct lhost){ .set = route_set_new() };
    site->host_count++;
    return host;
}

/* The tables of anchors are the VM's; each site has its own reference to them. */
static void take_anchors(lua_State *L, struct lsite *site)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "srv.anchors");
    for (int i = 0; i < ANCHOR_COUNT; i++) {
        lua_rawgeti(L, -1, i + 1);
        site->anchor_refs[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_pop(L, 1);
}

static void take_find(lua_State *L, struct lsite *site)
{
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "find");
    site->find_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
}

/* site() -> site */
static int new_site(lua_State *L)
{
    struct lsite *site = lclass_new(L, METATABLE, sizeof(*site));

    site->vm         = vm_of(L);
    site->handle.cut = cut;
    site->own_ref    = LUA_NOREF;
    list_init(&site->calls);
    for (int i = 0; i < ENTRY_COUNT; i++)
        site->entry_refs[i] = LUA_NOREF;
    handle_link(&site->handle, site->vm);
    take_anchors(L, site);
    take_find(L, site);
    add_host(L, site);
    return 1;
}

/* site:host(pattern) -> index: hosts are asked in the order in which they were added */
static int site_host(lua_State *L)
{
    struct lsite         *site = lsite_check(L, 1);
    struct err            err;
    struct route_pattern *pattern = route_host_new(lstr_check(L, 2), &err);
    struct lhost         *host;

    if (!pattern)
        return luaL_error(L, "%s", err.text);
    host              = add_host(L, site);
    host->pattern     = pattern;
    host->param_count = route_pattern_param_count(pattern);
    lua_pushinteger(L, (lua_Integer)site->host_count - 1);
    return 1;
}

/* site:host_params(index) -> { { name }, ... } */
static int site_host_params(lua_State *L)
{
    const struct lhost *host = &lsite_check(L, 1)->hosts[luaL_checkinteger(L, 2)];

    lua_createtable(L, (int)host->param_count, 0);
    for (unsigned i = 0; i < host->param_count; i++) {
        struct str name = route_pattern_param(host->pattern, i)->name;

        lua_createtable(L, 0, 1);
        lstr_push(L, name);
        lua_setfield(L, -2, "name");
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* --- adding a route ------------------------------------------------------------------------------- */

static void free_route(struct lroute *route)
{
    if (!route)
        return;
    for (unsigned i = 0; i < route->param_count; i++)
        free(route->params[i].name);
    free(route->params);
    free(route->label);
    free(route->path);
    free(route->name);
    free(route);
}

static char *field_text(lua_State *L, int table, const char *name)
{
    const char *text;
    char       *copy;

    lua_getfield(L, table, name);
    text = lua_tostring(L, -1);
    copy = text ? must(L, strdup(text)) : NULL;
    lua_pop(L, 1);
    return copy;
}

static uint64_t field_number(lua_State *L, int table, const char *name, double factor,
                             uint64_t missing)
{
    uint64_t number = missing;

    lua_getfield(L, table, name);
    if (lua_isnumber(L, -1))
        number = (uint64_t)(lua_tonumber(L, -1) * factor + 0.5);
    lua_pop(L, 1);
    return number;
}

static int field_ref(lua_State *L, int table, const char *name)
{
    lua_getfield(L, table, name);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

static uint64_t methods_at(lua_State *L, int table)
{
    uint64_t methods = 0;

    lua_getfield(L, table, "methods");
    for (int i = 1;; i++) {
        size_t      len;
        const char *name;

        lua_rawgeti(L, -1, i);
        name = lua_tolstring(L, -1, &len);
        if (!name)
            break;
        methods |= strcmp(name, "*") == 0 ? ROUTE_METHODS_ALL
                                          : ROUTE_METHOD_BIT(route_method_of(str_make(name, len)));
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return methods;
}

static enum route_slash slash_at(lua_State *L, int table)
{
    static const char *const WORDS[] = { "ignore", "strict", "redirect", NULL };
    int                      slash;

    lua_getfield(L, table, "slash");
    slash = luaL_checkoption(L, -1, "ignore", WORDS);
    lua_pop(L, 1);
    return (enum route_slash)slash;
}

static void set_param(lua_State *L, struct lparam *param, const struct route_param *from)
{
    param->name   = must(L, strndup(from->name.at, from->name.len));
    param->number = from->type == ROUTE_INT || from->type == ROUTE_NUMBER;
}

/* Host's first, then the path's: the order of the runner's arguments. */
static void set_params(lua_State *L, struct lroute *route, const struct lhost *host,
                       const struct route_pattern *pattern)
{
    unsigned of_path = route_pattern_param_count(pattern);

    route->params = must(L, calloc(host->param_count + of_path + 1, sizeof(*route->params)));
    for (unsigned i = 0; i < host->param_count; i++)
        set_param(L, &route->params[route->param_count++], route_pattern_param(host->pattern, i));
    for (unsigned i = 0; i < of_path; i++)
        set_param(L, &route->params[route->param_count++], route_pattern_param(pattern, i));
}

static struct lroute *route_at(lua_State *L, int table)
{
    struct lroute *route = must(L, calloc(1, sizeof(*route)));

    route->runner_ref  = LUA_NOREF;
    route->plan_ref    = LUA_NOREF;
    route->label       = field_text(L, table, "label");
    route->path        = field_text(L, table, "path");
    route->name        = field_text(L, table, "name");
    route->timeout_ms  = field_number(L, table, "timeout", 1000, 0);
    route->body_limit  = field_number(L, table, "body_limit", 1, UINT64_MAX);
    route->finishes    = lfield_bool(L, table, "finishes");
    route->wants_sent  = lfield_bool(L, table, "wants_sent");
    route->wants_abort = lfield_bool(L, table, "wants_abort");
    return route;
}

static void append_route(lua_State *L, struct lhost *host, struct lroute *route)
{
    struct lroute **routes = realloc(host->routes, (host->route_count + 1) * sizeof(*host->routes));

    host->routes                      = must(L, routes);
    host->routes[host->route_count++] = route;
}

/* site:add(host, { path, label, methods, slash, fallback, name, timeout, body_limit, finishes,
 * wants_sent, wants_abort }) -> id | nil, earlier id. The runner is given later: it needs the id. */
static int site_add(lua_State *L)
{
    struct lsite     *site = lsite_check(L, 1);
    struct lhost     *host = &site->hosts[luaL_checkinteger(L, 2)];
    struct lroute    *route;
    struct route_spec spec = { 0 };
    struct err        err;
    int               id, earlier = -1;

    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_argcheck(L, !site->sealed, 1, "the site is sealed");
    route         = route_at(L, 3);
    spec.methods  = methods_at(L, 3);
    spec.slash    = slash_at(L, 3);
    spec.fallback = lfield_bool(L, 3, "fallback");
    spec.pattern  = route_pattern_new(str_of(route->path), &err);
    if (!spec.pattern)
        return luaL_error(L, "%s", err.text); /* the route stays unreachable: the load has failed */
    set_params(L, route, host, spec.pattern);
    id = route_set_add(host->set, &spec, &earlier);
    if (id >= 0) {
        append_route(L, host, route);
        lua_pushinteger(L, id);
        return 1;
    }
    route_pattern_free(spec.pattern);
    free_route(route);
    lua_pushnil(L);
    lua_pushinteger(L, earlier);
    return 2;
}

/* site:run(host, id, runner, plan) */
static int site_run(lua_State *L)
{
    struct lsite  *site  = lsite_check(L, 1);
    struct lhost  *host  = &site->hosts[luaL_checkinteger(L, 2)];
    struct lroute *route = host->routes[luaL_checkinteger(L, 3)];

    luaL_checktype(L, 4, LUA_TFUNCTION);
    luaL_checktype(L, 5, LUA_TTABLE);
    lua_settop(L, 5);
    route->plan_ref   = luaL_ref(L, LUA_REGISTRYINDEX);
    route->runner_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* site:seal { unmatched, fail, late, resolve, aborted, sent, start, stop } */
static int site_seal(lua_State *L)
{
    static const char *const NAMES[ENTRY_COUNT] = {
        [ENTRY_UNMATCHED] = "unmatched", [ENTRY_FAIL] = "fail",       [ENTRY_LATE] = "late",
        [ENTRY_RESOLVE] = "resolve",     [ENTRY_ABORTED] = "aborted", [ENTRY_SENT] = "sent",
        [ENTRY_START] = "start",         [ENTRY_STOP] = "stop",
    };
    struct lsite *site = lsite_check(L, 1);

    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_argcheck(L, !site->sealed, 1, "the site is sealed");
    for (int i = 0; i < ENTRY_COUNT; i++)
        site->entry_refs[i] = field_ref(L, 2, NAMES[i]);
    for (unsigned i = 0; i < site->host_count; i++)
        route_set_seal(site->hosts[i].set);
    site->sealed = true;
    lua_settop(L, 1);
    return 1;
}

static void free_host(struct lhost *host)
{
    for (unsigned i = 0; i < host->route_count; i++)
        free_route(host->routes[i]);
    free(host->routes);
    route_set_free(host->set);
    route_pattern_free(host->pattern);
}

static int collect(lua_State *L)
{
    struct lsite *site = luaL_checkudata(L, 1, METATABLE);

    assert(list_is_empty(&site->calls));
    handle_unlink(&site->handle);
    for (unsigned i = 0; i < site->host_count; i++)
        free_host(&site->hosts[i]);
    free(site->hosts);
    site->hosts      = NULL;
    site->host_count = 0;
    return 0;
}

/* --- matching -------------------------------------------------------------------------------------- */

/* Of a value that a Lua pattern looks at. srv.web.router refuses patterns that such a value could hold up. */
enum { PATTERN_VALUE_BYTES_MAX = 1000 };

struct question {
    const struct lsite *site;
    struct str          pattern, value;
    bool                fits;
};

static int ask_pattern(lua_State *L)
{
    struct question *question = lua_touserdata(L, 1);

    lua_rawgeti(L, LUA_REGISTRYINDEX, question->site->find_ref);
    lstr_push(L, question->value);
    lua_pushliteral(L, "^");
    lstr_push(L, question->pattern);
    lua_pushliteral(L, "$");
    lua_concat(L, 3);
    lua_call(L, 2, 1);
    question->fits = !lua_isnil(L, -1);
    return 0;
}

bool lsite_accepts(void *arg, struct str lua_pattern, struct str value)
{
    struct lsite   *site     = arg;
    struct question question = { site, lua_pattern, value, false };
    int             top      = lua_gettop(site->vm->L);

    if (value.len > PATTERN_VALUE_BYTES_MAX)
        return false;
    if (lua_cpcall(site->vm->L, ask_pattern, &question))
        lua_settop(site->vm->L, top); /* a malformed pattern fits nothing */
    return question.fits;
}

/* Params of host and path are kept side by side, as the runner takes them. */
static void keep_params(struct lcall *call, const struct str *of_host, unsigned host_count,
                        const struct route_match *match)
{
    call->param_count = host_count + match->param_count;
    if (call->param_count == 0)
        return;
    call->params = arena_alloc(&call->ex->arena, call->param_count * sizeof(*call->params));
    if (host_count)
        memcpy(call->params, of_host, host_count * sizeof(*of_host));
    memcpy(call->params + host_count, match->params, match->param_count * sizeof(*match->params));
}

/* What was found in one host, if that is more than what is known of the call so far. A path may have
 * routes in several hosts that fit; Allow names the methods of all. */
static void take_match(struct lcall *call, unsigned index, const struct lhost *host,
                       enum route_found found, const struct route_match *match,
                       const struct str *of_host)
{
    if (found == ROUTE_NO_METHOD && call->found == ROUTE_NO_METHOD)
        call->allowed |= match->allowed;
    if (found == ROUTE_NOT_FOUND || (found != ROUTE_FOUND && call->found != ROUTE_NOT_FOUND))
        return;
    call->found   = found;
    call->host    = index;
    call->allowed = found == ROUTE_NO_METHOD ? match->allowed : 0;
    if (found != ROUTE_FOUND)
        return;
    call->rank  = match->rank;
    call->route = host->routes[match->route];
    keep_params(call, of_host, host->param_count, match);
}

/* AFTER: -1, or the rank of the match that passed. True: FOUND. */
static bool match_in(struct lsite *site, unsigned index, struct lcall *call, int after)
{
    const struct lhost *host = &site->hosts[index];
    struct exchange    *ex   = call->ex;
    struct str          of_host[ROUTE_PARAMS_MAX];
    struct route_match  match;
    enum route_found    found;
    struct route_query  query = { .method      = ex->request.method_id,
                                  .path        = ex->request.path,
                                  .after       = after,
                                  .accepts     = lsite_accepts,
                                  .accepts_arg = site,
                                  .arena       = &ex->arena };

    if (host->pattern && !route_host_match(host->pattern, ex->request.host, lsite_accepts, site,
                                           &ex->arena, of_host))
        return false;
    found = route_set_match(host->set, &query, &match);
    if (found == ROUTE_FOUND || after < 0)
        take_match(call, index, host, found, &match, of_host);
    return found == ROUTE_FOUND;
}

/* Hosts that are named come before any host. */
void lsite_match(struct lsite *site, struct lcall *call)
{
    call->found = ROUTE_NOT_FOUND;
    for (unsigned i = 1; i < site->host_count; i++)
        if (match_in(site, i, call, -1))
            return;
    match_in(site, 0, call, -1);
}

bool lsite_match_next(struct lsite *site, struct lcall *call)
{
    for (unsigned i = call->host; i != 0 && i < site->host_count; i++)
        if (match_in(site, i, call, i == call->host ? call->rank : -1))
            return true;
    return match_in(site, 0, call, call->host == 0 ? call->rank : -1);
}

/* --- life ------------------------------------------------------------------------------------------- */

static int prepare_start(lua_State *co, struct task *task, void *arg)
{
    const struct lsite *site = arg;

    lua_rawgeti(co, LUA_REGISTRYINDEX, site->entry_refs[ENTRY_START]);
    return 0;
}

static int prepare_stop(lua_State *co, struct task *task, void *arg)
{
    const struct lsite *site = arg;

    lua_rawgeti(co, LUA_REGISTRYINDEX, site->entry_refs[ENTRY_STOP]);
    return 0;
}

void lsite_start(struct lsite *site)
{
    task_start(site->vm,
               &(struct task_spec){ .prepare = prepare_start, .arg = site, .label = "app start" });
}

/* Not to be cancelled with the rest, so that hooks `stop` may still say good-bye. */
void lsite_retire(struct lsite *site)
{
    if (!site->vm)
        return;
    task_start(site->vm, &(struct task_spec){ .prepare     = prepare_stop,
                                              .arg         = site,
                                              .label       = "app stop",
                                              .deadline_ms = STOP_MS,
                                              .no_cancel   = true });
}

void lsite_cancel_calls(struct lsite *site, const char *reason)
{
    list_each_safe(node, &site->calls)
    {
        struct lcall *call = container_of(node, struct lcall, of_site);

        if (call->task)
            task_cancel(call->task, reason);
    }
}

void lsite_end_events(struct lsite *site)
{
    site->ends_events = true;
    list_each_safe(node, &site->calls)
    {
        struct lcall *call = container_of(node, struct lcall, of_site);

        if (call->events && call->task)
            task_cancel(call->task, "shutdown");
    }
}

void lsite_register(lua_State *L)
{
    static const luaL_Reg METHODS[] = {
        { "host", site_host }, { "host_params", site_host_params },
        { "add", site_add },   { "run", site_run },
        { "seal", site_seal }, { "__gc", collect },
        { NULL, NULL },
    };

    lclass_add(L, METATABLE, METHODS);
    lua_pushcfunction(L, new_site);
    lua_setfield(L, -2, "site");
}
