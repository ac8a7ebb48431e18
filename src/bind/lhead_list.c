#include "bind/lhead_list.h"

#include <lauxlib.h>

#include "base/err.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lhead.h"
#include "bind/lstr.h"
#include "http/message.h"

enum { LIST_FIELDS_MAX = 64 };

/* Never freed before the VM: the fields of calls point to its texts. */
struct lhead_list {
    unsigned     count;
    struct field fields[]; /* the strings stand in the registry */
};

/* --- making one ---------------------------------------------------------------------------------------- */

/* The string at INDEX of the table, kept for good. */
static struct str keep_text(lua_State *L, int index)
{
    struct str text;

    lua_rawgeti(L, 1, index);
    text = lstr_check(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return text;
}

static struct lhead_list *new_list(lua_State *L, unsigned count)
{
    struct lhead_list *list = lua_newuserdata(L, sizeof(*list) + count * sizeof(struct field));

    list->count = count;
    lua_pushvalue(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return list;
}

/* field_list({ name, value, name, value ... }) -> list */
static int field_list(lua_State *L)
{
    unsigned           count;
    struct lhead_list *list;
    struct err         err;

    luaL_checktype(L, 1, LUA_TTABLE);
    count = (unsigned)lua_objlen(L, 1) / 2;
    if (count > LIST_FIELDS_MAX)
        return lerror_misuse(L, "at most %d fields can be listed", LIST_FIELDS_MAX);
    list = new_list(L, count);
    for (unsigned i = 0; i < count; i++) {
        struct field *field = &list->fields[i];

        *field = (struct field){ .name  = keep_text(L, (int)(2 * i + 1)),
                                 .value = keep_text(L, (int)(2 * i + 2)) };
        if (lhead_check_listed(field, &err) < 0)
            return lerror_misuse(L, "%s", err.text);
        field->id = FIELD_CHECKED;
    }
    return 1;
}

/* --- putting them on an answer ---------------------------------------------------------------------------- */

static int done(lua_State *L, int rc, const struct err *err)
{
    if (rc < 0)
        return lerror_misuse(L, "%s", err->text);
    lua_settop(L, 1);
    return 1;
}

/* The fields of a list have different names: only what was there before is looked at. */
static int add_missing(struct lcall *call, const struct lhead_list *list, struct err *err)
{
    unsigned before = call->field_count;
    int      rc     = lhead_reserve(call, list->count, err);

    for (unsigned i = 0; rc == 0 && i < list->count; i++)
        if (!lhead_has(call, list->fields[i].name, before))
            lhead_append_checked(call, &list->fields[i]);
    return rc;
}

/* set_missing(res, list) -> res: fields that are there stay */
static int set_missing(lua_State *L)
{
    struct lcall *call = lhead_check_open(L);
    struct err    err;

    return done(L, add_missing(call, lua_touserdata(L, 2), &err), &err);
}

static bool is_of(const struct lhead_list *list, const struct field *field)
{
    for (unsigned i = 0; i < list->count; i++)
        if (field->value.at == list->fields[i].value.at)
            return true;
    return false;
}

/* Those that nobody has set anew since: their texts are still the list's own. */
static void take_off(struct lcall *call, const struct lhead_list *list)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < call->field_count; i++)
        if (!is_of(list, &call->fields[i]))
            call->fields[kept++] = call->fields[i];
    call->field_count = kept;
}

/* set_defaults(res, list) -> res: as set_missing(), and in place of an earlier list of defaults */
static int set_defaults(lua_State *L)
{
    struct lcall            *call = lhead_check_open(L);
    const struct lhead_list *list = lua_touserdata(L, 2);
    struct err               err;

    if (call->defaults)
        take_off(call, call->defaults);
    call->defaults = list;
    return done(L, add_missing(call, list, &err), &err);
}

/* set_list(res, list) -> res: in place of all fields of those names */
static int set_list(lua_State *L)
{
    struct lcall            *call = lhead_check_open(L);
    const struct lhead_list *list = lua_touserdata(L, 2);
    struct err               err;

    for (unsigned i = 0; i < list->count; i++)
        lhead_remove(call, list->fields[i].name);
    return done(L, add_missing(call, list, &err), &err);
}

void lhead_list_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "field_list", field_list },
        { "set_missing", set_missing },
        { "set_defaults", set_defaults },
        { "set_list", set_list },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
