#include "bind/lhead.h"

#include <assert.h>
#include <string.h>

#include <lauxlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lstr.h"
#include "http/chars.h"
#include "http/condition.h"
#include "http/message.h"
#include "http/mime.h"

enum { FIELDS_FIRST = 16, FIELDS_MAX = 256 };

/* Seconds since 1970 beyond all dates that HTTP can write, and far within int64_t. */
#define MOMENT_MAX 1e15

/* --- fields ---------------------------------------------------------------------------------------- */

/* What belongs to the connection or to the framing of the body is the server's. */
static bool is_the_servers(struct str name)
{
    switch (name.len) {
    case 2: return str_is_nocase(name, STR("te"));
    case 7: return str_is_nocase(name, STR("upgrade")) || str_is_nocase(name, STR("trailer"));
    case 10:
        return str_is_nocase(name, STR("connection")) || str_is_nocase(name, STR("keep-alive"));
    case 16: return str_is_nocase(name, STR("proxy-connection"));
    case 17: return str_is_nocase(name, STR("transfer-encoding"));
    default: return false;
    }
}

static int check_field(struct str name, struct str value, struct err *err)
{
    if (!chars_are_token(name))
        return err_set(err, ERR_INVALID, "\"%.*s\" is no name for a header", STR_ARG(name));
    if (!chars_are_field_value(value))
        return err_set(err, ERR_INVALID,
                       "the value of %.*s has bytes that HTTP forbids (a line break?)",
                       STR_ARG(name));
    if (is_the_servers(name))
        return err_set(err, ERR_INVALID, "%.*s is set by the server alone", STR_ARG(name));
    return 0;
}

bool lhead_is_sound(struct str name, struct str value)
{
    return check_field(name, value, NULL) == 0;
}

static bool is_type(struct str name)
{
    return str_is_nocase(name, STR("content-type"));
}

static bool is_length(struct str name)
{
    return str_is_nocase(name, STR("content-length"));
}

int lhead_check_listed(const struct field *field, struct err *err)
{
    if (is_type(field->name) || is_length(field->name))
        return err_set(err, ERR_INVALID, "%.*s is each answer's own", STR_ARG(field->name));
    return check_field(field->name, field->value, err);
}

static int grow_fields(struct lcall *call, unsigned wanted, struct err *err)
{
    unsigned      room = call->field_room ? 2 * call->field_room : FIELDS_FIRST;
    struct field *fields;

    while (room < wanted)
        room *= 2;
    if (room > FIELDS_MAX)
        return err_set(err, ERR_TOO_LARGE, "an answer has at most %d headers", FIELDS_MAX);
    fields = arena_alloc(&call->ex->arena, room * sizeof(*fields));
    if (call->field_count)
        memcpy(fields, call->fields, call->field_count * sizeof(*fields));
    call->fields     = fields;
    call->field_room = room;
    return 0;
}

int lhead_reserve(struct lcall *call, unsigned more, struct err *err)
{
    unsigned wanted = call->field_count + more;

    return wanted <= call->field_room ? 0 : grow_fields(call, wanted, err);
}

void lhead_append_checked(struct lcall *call, const struct field *field)
{
    assert(call->field_count < call->field_room);
    call->fields[call->field_count++] = *field;
}

int lhead_add_checked(struct lcall *call, const struct field *fields, unsigned count,
                      struct err *err)
{
    int rc = lhead_reserve(call, count, err);

    for (unsigned i = 0; rc == 0 && i < count; i++)
        lhead_append_checked(call, &fields[i]);
    return rc;
}

static int append_field(struct lcall *call, struct str name, struct str value, struct err *err)
{
    struct arena *arena = &call->ex->arena;

    if (lhead_reserve(call, 1, err) < 0)
        return ERR_TOO_LARGE;
    call->fields[call->field_count++] =
        (struct field){ .name = arena_copy(arena, name), .value = arena_copy(arena, value) };
    return 0;
}

static int set_length(struct lcall *call, struct str value, struct err *err)
{
    if (!str_to_u64(value, UINT64_MAX - 1, &call->announced))
        return err_set(err, ERR_INVALID, "Content-Length must be a number of bytes");
    return 0;
}

static int put_checked(struct lcall *call, struct str name, struct str value, struct err *err)
{
    if (is_length(name))
        return set_length(call, value, err);
    if (is_type(name)) {
        call->type = arena_copy(&call->ex->arena, value);
        return 0;
    }
    return append_field(call, name, value, err);
}

int lhead_add(struct lcall *call, struct str name, struct str value, struct err *err)
{
    int rc = check_field(name, value, err);

    return rc < 0 ? rc : put_checked(call, name, value, err);
}

void lhead_remove(struct lcall *call, struct str name)
{
    unsigned kept = 0;

    if (is_type(name))
        call->type = STR_NONE;
    if (is_length(name))
        call->announced = ANSWER_LENGTH_UNKNOWN;
    for (unsigned i = 0; i < call->field_count; i++)
        if (!str_is_nocase(call->fields[i].name, name))
            call->fields[kept++] = call->fields[i];
    call->field_count = kept;
}

int lhead_set(struct lcall *call, struct str name, struct str value, struct err *err)
{
    int rc = check_field(name, value, err);

    if (rc < 0)
        return rc;
    lhead_remove(call, name);
    return put_checked(call, name, value, err);
}

struct str lhead_get(const struct lcall *call, struct str name)
{
    if (is_type(name))
        return call->type;
    for (unsigned i = 0; i < call->field_count; i++)
        if (str_is_nocase(call->fields[i].name, name))
            return call->fields[i].value;
    return STR_NONE;
}

bool lhead_has(const struct lcall *call, struct str name, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (str_is_nocase(call->fields[i].name, name))
            return true;
    return false;
}

struct str lhead_type(const struct lcall *call)
{
    if (call->type.at)
        return call->type;
    switch (call->recorded) {
    case RECORDED_TEXT: return STR("text/plain; charset=utf-8");
    case RECORDED_JSON: return STR("application/json");
    case RECORDED_STREAM:
    case RECORDED_FILE: return STR("application/octet-stream");
    case RECORDED_NOTHING:
    case RECORDED_SOCKET:
    case RECORDED_EMPTY: break;
    }
    return STR_NONE;
}

void lhead_fill(const struct lcall *call, struct answer *answer)
{
    answer->status      = call->status ? call->status : 200;
    answer->fields      = call->fields;
    answer->field_count = call->field_count;
}

/* LIST, then NAME, with a comma between. */
static struct str joined(struct arena *arena, struct str list, struct str name)
{
    char *to = arena_alloc(arena, list.len + 2 + name.len);

    memcpy(to, list.at, list.len);
    memcpy(to + list.len, ", ", 2);
    memcpy(to + list.len + 2, name.at, name.len);
    return str_make(to, list.len + 2 + name.len);
}

void lhead_note_trailer(struct lcall *call, struct str name)
{
    struct arena *arena = &call->ex->arena;

    call->trailers =
        call->trailers.at ? joined(arena, call->trailers, name) : arena_copy(arena, name);
}

void lhead_add_trailer(struct lcall *call)
{
    append_field(call, STR("Trailer"), call->trailers, NULL);
}

/* --- from Lua values ---------------------------------------------------------------------------------- */

/* A string or a number at INDEX, which must not be the key of a running lua_next(). */
static int bad_value(lua_State *L, int index, struct str name, struct err *err)
{
    return err_set(err, ERR_INVALID, "the value of %.*s must be a string or a number, not %s",
                   STR_ARG(name), luaL_typename(L, index));
}

static int add_lines(struct lcall *call, lua_State *L, int index, struct str name, struct err *err)
{
    int rc = 0;

    lhead_remove(call, name);
    for (int i = 1; rc == 0; i++) {
        struct str line;

        lua_rawgeti(L, index, i);
        line = lstr_at(L, -1);
        if (line.at)
            rc = lhead_add(call, name, line, err);
        else if (!lua_isnil(L, -1))
            rc = bad_value(L, -1, name, err);
        lua_pop(L, 1);
        if (!line.at)
            break;
    }
    return rc;
}

/* String, number, array of them, or false. */
static int set_value(struct lcall *call, lua_State *L, int index, struct str name, struct err *err)
{
    struct str value;

    switch (lua_type(L, index)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
        lua_pushvalue(L, index); /* lstr_at() makes a string of a number where it stands */
        value = lstr_at(L, -1);
        lua_pop(L, 1); /* INDEX keeps a string alive; a number's text is copied below */
        return lhead_set(call, name, value, err);
    case LUA_TTABLE: return add_lines(call, L, index, name, err);
    case LUA_TBOOLEAN:
        if (!lua_toboolean(L, index)) {
            lhead_remove(call, name);
            return 0;
        }
        return bad_value(L, index, name, err);
    default: return bad_value(L, index, name, err);
    }
}

int lhead_set_table(struct lcall *call, lua_State *L, int index, struct err *err)
{
    int rc = 0;

    lua_pushnil(L);
    while (rc == 0 && lua_next(L, index)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            rc = err_set(err, ERR_INVALID, "headers are a table from names to values");
        else
            rc = set_value(call, L, lua_gettop(L), lstr_at(L, -2), err);
        lua_pop(L, 1);
    }
    if (rc < 0)
        lua_pop(L, 1);
    return rc;
}

int lhead_set_status(struct lcall *call, lua_State *L, int index, struct err *err)
{
    double status = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;

    if (status < 200 || status > 599 || status != (unsigned)status)
        return err_set(err, ERR_INVALID, "a status is a whole number from 200 to 599");
    call->status = (unsigned)status;
    return 0;
}

/* --- validators ----------------------------------------------------------------------------------------- */

struct condition_validators lhead_validators(const struct lcall *call)
{
    struct condition_validators validators = { lhead_get(call, STR("etag")), CONDITION_NO_TIME };
    struct str                  modified   = lhead_get(call, STR("last-modified"));

    if (modified.at)
        clock_parse_http_date(modified, &validators.last_modified);
    return validators;
}

unsigned lhead_condition(const struct lcall *call)
{
    const struct request       *request = &call->ex->request;
    unsigned                    status  = call->status ? call->status : 200;
    struct condition_validators validators;

    if (call->field_count == 0 || status > 299)
        return 0;
    if (request->method_id != ROUTE_GET && request->method_id != ROUTE_HEAD)
        return 0;
    validators = lhead_validators(call);
    if (!validators.etag.at && validators.last_modified == CONDITION_NO_TIME)
        return 0;
    return condition_status(request, &validators);
}

void lhead_take_condition(struct lcall *call, unsigned status)
{
    call->status = status;
    if (status == 412) {
        lhead_remove(call, STR("Cache-Control"));
        lhead_remove(call, STR("Expires"));
    }
}

/* --- Lua functions: each `(res, [value]) -> res`, and reads without a value -------------------------------- */

struct lcall *lhead_check_open(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    if (call->committed)
        lerror_misuse(L, "the head of this answer is out: it cannot be changed any more");
    return call;
}

/* Returns res, or raises. */
static int chain(lua_State *L, int rc, const struct err *err)
{
    if (rc < 0)
        return lerror_misuse(L, "%s", err->text);
    lua_settop(L, 1);
    return 1;
}

/* status(res, [n]) */
static int status(lua_State *L)
{
    struct err err;

    if (lua_isnoneornil(L, 2)) {
        unsigned set = lcall_check(L, 1)->status;

        lua_pushinteger(L, set ? (lua_Integer)set : 200);
        return 1;
    }
    return chain(L, lhead_set_status(lhead_check_open(L), L, 2, &err), &err);
}

/* default_status(res, n): unless one was set */
static int default_status(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);
    struct err    err;

    if (call->status || call->committed)
        return chain(L, 0, NULL);
    return chain(L, lhead_set_status(call, L, 2, &err), &err);
}

/* field(res, name, [value | false]) */
static int field(lua_State *L)
{
    struct str name = lstr_check(L, 2);
    struct err err;

    if (lua_isnoneornil(L, 3))
        return lstr_push_or_nil(L, lhead_get(lcall_check(L, 1), name));
    return chain(L, set_value(lhead_check_open(L), L, 3, name, &err), &err);
}

/* append(res, name, value): one more line */
static int append(lua_State *L)
{
    struct err err;

    return chain(L, lhead_add(lhead_check_open(L), lstr_check(L, 2), lstr_check(L, 3), &err), &err);
}

/* remove(res, name) */
static int remove_field(lua_State *L)
{
    lhead_remove(lhead_check_open(L), lstr_check(L, 2));
    return chain(L, 0, NULL);
}

/* set_headers(res, table) */
static int set_headers(lua_State *L)
{
    struct err err;

    luaL_checktype(L, 2, LUA_TTABLE);
    return chain(L, lhead_set_table(lhead_check_open(L), L, 2, &err), &err);
}

/* "json", ".html", "text/csv"; text types get the charset. At NULL: unknown. */
static struct str media_type_of(lua_State *L, struct str name)
{
    if (str_find(name, '/') < name.len) {
        if (!str_starts_with(name, STR("text/")) || str_find(name, ';') < name.len)
            return name;
        lstr_push(L, name);
        lua_pushliteral(L, "; charset=utf-8");
        lua_concat(L, 2);
        return lstr_at(L, -1);
    }
    if (name.len && name.at[0] == '.')
        name = str_from(name, 1);
    if (str_is(name, STR("text")))
        name = STR("txt");
    if (str_is(name, STR("bin")))
        return STR("application/octet-stream");
    name = mime_of_extension(name);
    return name.len ? name : STR_NONE;
}

/* type(res, [t]) */
static int type(lua_State *L)
{
    struct str media_type;
    struct err err;

    if (lua_isnoneornil(L, 2))
        return lstr_push_or_nil(L, lcall_check(L, 1)->type);
    media_type = media_type_of(L, lstr_check(L, 2));
    if (!media_type.at)
        return lerror_misuse(L, "unknown media type \"%s\"", lua_tostring(L, 2));
    return chain(L, lhead_set(lhead_check_open(L), STR("Content-Type"), media_type, &err), &err);
}

/* default_type(res, t): unless one was set */
static int default_type(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);
    struct err    err;

    if (call->type.at || call->committed)
        return chain(L, 0, NULL);
    return chain(L, lhead_set(call, STR("Content-Type"), lstr_check(L, 2), &err), &err);
}

/* media_type(name) -> string | nil */
static int media_type(lua_State *L)
{
    return lstr_push_or_nil(L, media_type_of(L, lstr_check(L, 1)));
}

static bool lists(struct str list, struct str name)
{
    struct str element;

    while (str_next(&list, ',', &element))
        if (str_is_nocase(element, name) || str_is(element, STR("*")))
            return true;
    return false;
}

static int vary_by_one(struct lcall *call, struct str name, struct err *err)
{
    struct field *first = NULL;

    for (unsigned i = 0; i < call->field_count; i++) {
        if (!str_is_nocase(call->fields[i].name, STR("Vary")))
            continue;
        if (lists(call->fields[i].value, name))
            return 0;
        if (!first)
            first = &call->fields[i];
    }
    if (!first || str_is(name, STR("*")))
        return lhead_set(call, STR("Vary"), name, err);
    if (!lhead_is_sound(STR("Vary"), name))
        return lhead_set(call, STR("Vary"), name, err); /* says what is wrong with it */
    first->value = joined(&call->ex->arena, first->value, name);
    return 0;
}

int lhead_add_vary(struct lcall *call, struct str names, struct err *err)
{
    struct str name;
    int        rc = 0;

    while (rc == 0 && str_next(&names, ',', &name))
        if (name.len)
            rc = vary_by_one(call, name, err);
    return rc;
}

/* vary(res, name...): each once */
static int vary(lua_State *L)
{
    struct lcall *call = lhead_check_open(L);
    int           rc   = 0;
    struct err    err;

    for (int i = 2; rc == 0 && i <= lua_gettop(L); i++)
        rc = lhead_add_vary(call, lstr_check(L, i), &err);
    return chain(L, rc, &err);
}

/* Quotes around it, none within: RFC 9110, 8.8.3. */
static bool is_quoted(struct str tag)
{
    struct str opaque = str_starts_with(tag, STR("W/")) ? str_from(tag, 2) : tag;

    return opaque.len >= 2 && opaque.at[0] == '"' &&
           str_find(str_from(opaque, 1), '"') == opaque.len - 2;
}

/* etag(res, [tag, [{ weak = true }]]): quotes are added where they are missing */
static int etag(lua_State *L)
{
    struct str tag;
    bool       weak = false;
    struct err err;

    if (lua_isnoneornil(L, 2))
        return lstr_push_or_nil(L, lhead_get(lcall_check(L, 1), STR("ETag")));
    tag = lstr_check(L, 2);
    if (lua_istable(L, 3)) {
        lua_getfield(L, 3, "weak");
        weak = lua_toboolean(L, -1);
    }
    if (!is_quoted(tag)) {
        if (str_find(tag, '"') < tag.len)
            return lerror_misuse(L, "res:etag: a tag holds no quotes");
        lua_pushfstring(L, "%s\"%s\"", weak ? "W/" : "", tag.at);
        tag = lstr_at(L, -1);
    } else if (weak && tag.at[0] == '"') {
        lua_pushfstring(L, "W/%s", tag.at);
        tag = lstr_at(L, -1);
    }
    return chain(L, lhead_set(lhead_check_open(L), STR("ETag"), tag, &err), &err);
}

/* The moment at index 2: seconds since 1970, or a date as HTTP writes it. */
static int64_t check_moment(lua_State *L)
{
    int64_t seconds = 0;
    double  number  = lua_type(L, 2) == LUA_TNUMBER ? lua_tonumber(L, 2) : 0;

    if (number != number || number < -MOMENT_MAX || number > MOMENT_MAX ||
        (lua_type(L, 2) != LUA_TNUMBER && !clock_parse_http_date(lstr_check(L, 2), &seconds)))
        lerror_misuse(L, "res:last_modified: seconds since 1970 or a date of HTTP is expected");
    return lua_type(L, 2) == LUA_TNUMBER ? (int64_t)number : seconds;
}

/* last_modified(res, [seconds | date]) */
static int last_modified(lua_State *L)
{
    char       date[CLOCK_HTTP_DATE_LEN];
    struct str text = str_make(date, sizeof(date));
    struct err err;

    if (lua_isnoneornil(L, 2))
        return lstr_push_or_nil(L, lhead_get(lcall_check(L, 1), STR("Last-Modified")));
    clock_http_date(date, check_moment(L));
    return chain(L, lhead_set(lhead_check_open(L), STR("Last-Modified"), text, &err), &err);
}

/* is_fresh(req) -> boolean: the validators on the answer would give 304 */
static int is_fresh(lua_State *L)
{
    lua_pushboolean(L, lhead_condition(lcall_check(L, 1)) == 304);
    return 1;
}

/* early_hints(res, headers): a 103 now */
static int early_hints(lua_State *L)
{
    struct lcall *call   = lhead_check_open(L);
    struct lcall  hints  = { .ex = call->ex, .announced = ANSWER_LENGTH_UNKNOWN };
    struct answer answer = { .status = 103 };
    struct err    err;
    int           rc;

    luaL_checktype(L, 2, LUA_TTABLE);
    rc = lhead_set_table(&hints, L, 2, &err);
    if (hints.type.at || hints.announced != ANSWER_LENGTH_UNKNOWN)
        return lerror_misuse(L,
                             "res:early_hints: Content-Type and Content-Length are the answer's");
    if (rc == 0 && hints.field_count) {
        answer.fields      = hints.fields;
        answer.field_count = hints.field_count;
        exchange_interim(call->ex, &answer); /* a client that has gone needs no hints */
    }
    return chain(L, rc, &err);
}

void lhead_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "status", status },
        { "default_status", default_status },
        { "field", field },
        { "append", append },
        { "remove", remove_field },
        { "set_headers", set_headers },
        { "type", type },
        { "default_type", default_type },
        { "media_type", media_type },
        { "vary", vary },
        { "etag", etag },
        { "last_modified", last_modified },
        { "is_fresh", is_fresh },
        { "early_hints", early_hints },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
