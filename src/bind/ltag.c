#include "bind/ltag.h"

#include <inttypes.h>
#include <stdio.h>

#include <lauxlib.h>

#include "base/err.h"
#include "base/map.h"
#include "bind/lcall.h"
#include "bind/lhead.h"
#include "http/exchange.h"
#include "http/route.h"

enum { TAG_BYTES = sizeof("W/\"0123456789abcdef-0123456789abcdef\"") };

bool ltag_waits_for_body(const struct lcall *call)
{
    unsigned char method = call->ex->request.method_id;

    return call->tag_bytes_max &&
           (call->recorded == RECORDED_TEXT || call->recorded == RECORDED_JSON) &&
           (call->status == 0 || call->status == 200) &&
           (method == ROUTE_GET || method == ROUTE_HEAD) && !lhead_get(call, STR("ETag")).at;
}

/* The same in all processes and on all machines, so under no secret: who can choose a body to collide with
 * another one of his gets his own old one. */
static void set_tag(struct lcall *call, struct str body)
{
    static const uint64_t KEY[2] = { 0, 0 };
    char                  tag[TAG_BYTES];
    struct err            err;
    int len = snprintf(tag, sizeof(tag), "%s\"%zx-%016" PRIx64 "\"", call->tags_weakly ? "W/" : "",
                       body.len, map_hash_with(KEY, body));

    /* With FIELDS_MAX others there is no room for it, and the answer goes without. */
    if (lhead_add(call, STR("ETag"), str_make(tag, (size_t)len), &err) < 0)
        call->tag_bytes_max = 0;
}

bool ltag_settles(struct lcall *call, struct str body)
{
    unsigned condition;

    if (!ltag_waits_for_body(call))
        return false;
    if (body.len <= call->tag_bytes_max)
        set_tag(call, body);
    condition = lhead_condition(call);
    if (condition)
        lhead_take_condition(call, condition);
    return condition != 0;
}

/* tag_body(res, weak, limit) */
static int tag_body(lua_State *L)
{
    struct lcall *call  = lcall_check(L, 1);
    double        limit = luaL_checknumber(L, 3);

    call->tags_weakly   = lua_toboolean(L, 2);
    call->tag_bytes_max = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
    return 0;
}

void ltag_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "tag_body", tag_body },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
