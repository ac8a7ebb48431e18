#include "bind/lrequest.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "bind/lcall.h"
#include "bind/ljson.h"
#include "bind/lpattern.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "bind/ltls.h"
#include "http/form.h"
#include "http/url.h"
#include "net/addr.h"
#include "net/tls.h"
#include "vm/task.h"

enum {
    QUERY_PAIRS_MAX  = 1000,
    NAME_BYTES_MAX   = 256, /* of a header asked for: no sent one is longer than the head */
    NUMBER_BYTES_MAX = 64,
};

static const struct request *check_request(lua_State *L)
{
    return &lcall_check(L, 1)->ex->request;
}

/* --- line and identity: each `(req) -> value` -------------------------------------------------- */

static int method(lua_State *L)
{
    return lstr_push(L, check_request(L)->method);
}

static int path(lua_State *L)
{
    return lstr_push(L, check_request(L)->path);
}

static int target(lua_State *L)
{
    return lstr_push(L, check_request(L)->target);
}

static int host(lua_State *L)
{
    return lstr_push(L, check_request(L)->host);
}

static int id(lua_State *L)
{
    return lstr_push(L, lcall_id(lcall_check(L, 1)));
}

/* set_id(req, id) */
static int set_id(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lcall_set_id(call, lstr_check(L, 2));
    return 0;
}

static int protocol(lua_State *L)
{
    const struct request *request = check_request(L);

    if (request->version_major == 2)
        lua_pushliteral(L, "HTTP/2");
    else
        lua_pushfstring(L, "HTTP/1.%d", (int)request->version_minor);
    return 1;
}

static int is_aborted(lua_State *L)
{
    lua_pushboolean(L, lcall_check(L, 1)->gone);
    return 1;
}

static int is_tls(lua_State *L)
{
    lua_pushboolean(L, lcall_check(L, 1)->ex->tls != NULL);
    return 1;
}

/* tls(req) -> { version, cipher, sni, resumed, client = { subject, serial, fingerprint } | nil } | nil */
static int tls(lua_State *L)
{
    const struct tls_info *info = lcall_check(L, 1)->ex->tls;

    if (!info)
        return 0;
    ltls_push_info(L, info, "client");
    return 1;
}

/* peer(req) -> ip, port of the socket */
static int peer(lua_State *L)
{
    const struct addr *addr = lcall_check(L, 1)->ex->peer;
    char               text[ADDR_TEXT_BYTES];

    lua_pushstring(L, addr ? addr_format_host(addr, text) : "127.0.0.1");
    lua_pushinteger(L, addr ? addr->port : 0);
    return 2;
}

/* time_left(req) -> seconds to the deadline, or nil when there is none */
static int time_left(lua_State *L)
{
    struct lcall *call    = lcall_check(L, 1);
    double        seconds = call->task ? task_time_left(call->task) : -1;

    if (seconds < 0)
        return 0;
    lua_pushnumber(L, seconds);
    return 1;
}

/* label(req) -> "GET /users/:id", for logs */
static int label(lua_State *L)
{
    lua_pushstring(L, lcall_label(lcall_check(L, 1)));
    return 1;
}

/* route_info(req) -> path, name | nil */
static int route_info(lua_State *L)
{
    const struct lroute *route = lcall_check(L, 1)->route;

    if (!route)
        return 0;
    lua_pushstring(L, route->path);
    lua_pushstring(L, route->name);
    return 2;
}

/* --- parameters ----------------------------------------------------------------------------------- */

/* The router has looked at it: digits of a form that strtod() reads. */
static void push_number(lua_State *L, struct str digits)
{
    char   text[NUMBER_BYTES_MAX];
    size_t len = digits.len < sizeof(text) - 1 ? digits.len : sizeof(text) - 1;

    memcpy(text, digits.at, len);
    text[len] = '\0';
    lua_pushnumber(L, strtod(text, NULL));
}

static void push_param(lua_State *L, const struct lcall *call, unsigned index)
{
    struct str value = call->params[index];

    if (!value.at)
        lua_pushnil(L);
    else if (call->route->params[index].number)
        push_number(L, value);
    else
        lstr_push(L, value);
}

int lrequest_push_params(lua_State *L, const struct lcall *call)
{
    if (call->param_count > LUA_MINSTACK / 2)
        luaL_checkstack(L, (int)call->param_count + 4, "parameters");
    for (unsigned i = 0; i < call->param_count; i++)
        push_param(L, call, i);
    return (int)call->param_count;
}

/* params(req) -> table */
static int params(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lua_createtable(L, 0, (int)call->param_count);
    for (unsigned i = 0; i < call->param_count; i++) {
        push_param(L, call, i);
        lua_setfield(L, -2, call->route->params[i].name);
    }
    ljson_mark_object(L, -1);
    return 1;
}

/* next_route(req) -> id, host: the next route that matches takes this one's place; or nil */
static int next_route(lua_State *L)
{
    struct lcall        *call = lcall_check(L, 1);
    const struct lhost  *chosen;
    const struct lroute *route;

    if (!call->route || !lsite_match_next(call->site, call))
        return 0;
    route  = call->route;
    chosen = &call->site->hosts[call->host];
    for (unsigned i = 0; i < chosen->route_count; i++)
        if (chosen->routes[i] == route)
            lua_pushinteger(L, (lua_Integer)i);
    lua_pushinteger(L, (lua_Integer)call->host);
    return 2;
}

/* miss(req) -> "not_found" | "no_method" | "bad_escape" | "moved", Allow's value: why no route runs */
static int miss(lua_State *L)
{
    static const char *const WORDS[] = {
        [ROUTE_FOUND] = "not_found",     [ROUTE_NOT_FOUND] = "not_found",
        [ROUTE_NO_METHOD] = "no_method", [ROUTE_BAD_ESCAPE] = "bad_escape",
        [ROUTE_MOVED] = "moved",
    };
    struct lcall *call = lcall_check(L, 1);
    struct buf    allow;

    lua_pushstring(L, WORDS[call->found]);
    buf_init(&allow, 1024);
    route_allow(call->allowed, &allow);
    lstr_push(L, buf_str(&allow));
    buf_fini(&allow);
    return 2;
}

/* under(req, pattern) -> boolean: the prefix covers the path */
static int under(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    lua_pushboolean(L, route_prefix_match(lpattern_check(L, 2), call->ex->request.path,
                                          lsite_accepts, call->site, &call->ex->arena, NULL) >= 0);
    return 1;
}

/* host_of(req) -> index of the site's host that the request is for; is_host(req, index) */
static int is_host(lua_State *L)
{
    struct lcall       *call  = lcall_check(L, 1);
    lua_Integer         index = luaL_checkinteger(L, 2);
    const struct lhost *asked = &call->site->hosts[index];

    lua_pushboolean(L, !asked->pattern ||
                           route_host_match(asked->pattern, call->ex->request.host, lsite_accepts,
                                            call->site, &call->ex->arena, NULL));
    return 1;
}

/* skip(req, segments) -> bytes of the path that its first segments take */
static int skip(lua_State *L)
{
    lua_pushinteger(
        L, (lua_Integer)route_path_skip(check_request(L)->path, (unsigned)luaL_checkinteger(L, 2)));
    return 1;
}

/* plan(req) -> the table that goes with the route, or with the path */
static int plan(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (call->route && call->found == ROUTE_FOUND)
        lua_rawgeti(L, LUA_REGISTRYINDEX, call->route->plan_ref);
    else
        lcall_push_kept(L, call, ANCHOR_PLAN);
    return 1;
}

/* set_plan(req, plan, wants_sent, wants_abort): of a path that no route takes */
static int set_plan(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    call->wants_sent  = lua_toboolean(L, 3);
    call->wants_abort = lua_toboolean(L, 4);
    lua_settop(L, 2);
    lcall_keep(L, call, ANCHOR_PLAN);
    return 0;
}

/* keep(p, object, [is_response]) -> boolean: OBJECT is the request's view from now on; false when
 * the request has ended */
static int keep(lua_State *L)
{
    struct lcall *call = lcall_to(L, 1);

    lua_pushboolean(L, call != NULL);
    if (call) {
        lua_pushvalue(L, 2);
        lcall_keep(L, call, lua_toboolean(L, 3) ? ANCHOR_RESPONSE : ANCHOR_REQUEST);
    }
    return 1;
}

/* --- fields ------------------------------------------------------------------------------------------ */

static struct str lower(struct str name, char *to)
{
    for (size_t i = 0; i < name.len; i++)
        to[i] = name.at[i] >= 'A' && name.at[i] <= 'Z' ? (char)(name.at[i] | 0x20) : name.at[i];
    return str_make(to, name.len);
}

/* Joins the lines of one name; cookies with "; ", as RFC 9113, 8.2.3 has it. */
static void push_joined(lua_State *L, const struct request *request, unsigned first)
{
    struct str  name = request->fields[first].name;
    const char *glue = request->fields[first].id == FIELD_COOKIE ? "; " : ", ";
    luaL_Buffer joined;

    luaL_buffinit(L, &joined);
    for (unsigned i = first; i < request->field_count; i++) {
        if (!str_is(request->fields[i].name, name))
            continue;
        if (i != first)
            luaL_addlstring(&joined, glue, 2);
        luaL_addlstring(&joined, request->fields[i].value.at, request->fields[i].value.len);
    }
    luaL_pushresult(&joined);
}

static bool is_repeated(const struct request *request, unsigned first)
{
    if (request->fields[first].id != FIELD_OTHER)
        return request->repeated & UINT32_C(1) << request->fields[first].id;
    for (unsigned i = first + 1; i < request->field_count; i++)
        if (str_is(request->fields[i].name, request->fields[first].name))
            return true;
    return false;
}

static void push_value(lua_State *L, const struct request *request, unsigned first)
{
    if (is_repeated(request, first))
        push_joined(L, request, first);
    else
        lstr_push(L, request->fields[first].value);
}

/* header(req, name) -> string | nil */
static int header(lua_State *L)
{
    const struct request *request = check_request(L);
    struct str            name    = lstr_check(L, 2);
    char                  text[NAME_BYTES_MAX];
    const struct field   *field = NULL;

    if (name.len <= sizeof(text))
        field = request_field_by_name(request, lower(name, text));
    if (field)
        push_value(L, request, (unsigned)(field - request->fields));
    else
        lua_pushnil(L); /* a value, for tonumber(req:header "x-count") */
    return 1;
}

/* is_preflight(req) -> boolean: a browser asks whether a page of another origin may send what it is about to */
static int is_preflight(lua_State *L)
{
    const struct request *request = check_request(L);

    lua_pushboolean(L, request->method_id == ROUTE_OPTIONS &&
                           request_field_by_name(request, STR("origin")) &&
                           request_field_by_name(request, STR("access-control-request-method")));
    return 1;
}

/* header_lines(req, name) -> array */
static int header_lines(lua_State *L)
{
    const struct request *request = check_request(L);
    struct str            name    = lstr_check(L, 2);
    int                   count   = 0;

    lua_newtable(L);
    for (unsigned i = 0; i < request->field_count; i++)
        if (str_is_nocase(request->fields[i].name, name)) {
            lstr_push(L, request->fields[i].value);
            lua_rawseti(L, -2, ++count);
        }
    ljson_mark_array(L, -1);
    return 1;
}

/* headers(req) -> table from lower-case names */
static int headers(lua_State *L)
{
    const struct request *request = check_request(L);

    lua_createtable(L, 0, (int)request->field_count);
    for (unsigned i = request->field_count; i-- > 0;) { /* the first of a name writes last */
        lstr_push(L, request->fields[i].name);
        push_value(L, request, i);
        lua_rawset(L, -3);
    }
    return 1;
}

/* --- query and form ------------------------------------------------------------------------------------ */

/* t[name] = value; repeats make an array. */
static void add_pair(lua_State *L, int table, const struct url_pair *pair)
{
    lstr_push(L, pair->name);
    lua_pushvalue(L, -1);
    lua_rawget(L, table);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lstr_push(L, pair->value);
        lua_rawset(L, table);
        return;
    }
    if (!lua_istable(L, -1)) {
        lua_createtable(L, 2, 0);
        ljson_mark_array(L, -1);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, table);
    }
    lstr_push(L, pair->value);
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
    lua_pop(L, 2);
}

static void push_pairs(lua_State *L, const struct url_pair *pairs, unsigned count)
{
    lua_createtable(L, 0, (int)count);
    for (unsigned i = 0; i < count; i++)
        add_pair(L, lua_gettop(L), &pairs[i]);
    ljson_mark_object(L, -1);
}

/* query(req) -> table | nil: more than 1,000 pairs */
static int query(lua_State *L)
{
    struct exchange *ex = lcall_check(L, 1)->ex;
    struct url_pair *pairs;
    unsigned         count;

    if (url_parse_query(&ex->arena, ex->request.query, QUERY_PAIRS_MAX, &pairs, &count) < 0)
        return 0;
    push_pairs(L, pairs, count);
    return 1;
}

/* parse_form(req, text, "utf-8" | "latin1", fields_max) -> table | nil, "too_many" | "malformed" */
static int parse_form(lua_State *L)
{
    static const char *const CHARSETS[] = { "utf-8", "latin1", NULL };
    struct exchange         *ex         = lcall_check(L, 1)->ex;
    struct str               text       = lstr_check(L, 2);
    enum form_charset        charset =
        luaL_checkoption(L, 3, NULL, CHARSETS) == 0 ? FORM_UTF8 : FORM_LATIN1;
    struct url_pair *pairs;
    unsigned         count;
    int              rc =
        form_parse(&ex->arena, text, charset, (unsigned)luaL_checkinteger(L, 4), &pairs, &count);

    if (rc < 0) {
        lua_pushnil(L);
        lua_pushstring(L, rc == ERR_TOO_LARGE ? "too_many" : "malformed");
        return 2;
    }
    push_pairs(L, pairs, count);
    return 1;
}

void lrequest_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "method", method },
        { "path", path },
        { "target", target },
        { "host", host },
        { "id", id },
        { "set_id", set_id },
        { "protocol", protocol },
        { "is_aborted", is_aborted },
        { "is_tls", is_tls },
        { "tls", tls },
        { "peer", peer },
        { "time_left", time_left },
        { "label", label },
        { "route_info", route_info },
        { "params", params },
        { "next_route", next_route },
        { "miss", miss },
        { "under", under },
        { "is_host", is_host },
        { "skip", skip },
        { "plan", plan },
        { "set_plan", set_plan },
        { "keep", keep },
        { "header", header },
        { "is_preflight", is_preflight },
        { "header_lines", header_lines },
        { "headers", headers },
        { "query", query },
        { "parse_form", parse_form },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
