#include "bind/lws_head.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "bind/lcall.h"
#include "bind/lfield.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "http/exchange.h"
#include "net/addr.h"

enum { HEAD_BYTES_MAX = 1 << 24 }; /* more than any head limit */

/* The texts that stand first, in this order; then a name and a value for each field. */
enum text {
    TEXT_LABEL, /* with a NUL, for who wants a C string */
    TEXT_METHOD,
    TEXT_TARGET,
    TEXT_HOST,
    TEXT_IP,
    TEXT_ID,
    TEXT_PROTOCOL,
    TEXT_ROUTE,
    TEXT_NAME, /* empty: it has none */
    TEXT_COUNT
};

struct lws_head {
    uint16_t port;
    bool     tls;
    uint32_t len;
    char     at[]; /* texts, each behind its length */
};

/* --- writing -------------------------------------------------------------------------------------- */

static void add_text(struct buf *to, struct str text)
{
    uint32_t len = (uint32_t)text.len;

    buf_add(to, &len, sizeof(len));
    buf_add_str(to, text);
}

static bool is_of_handshake(const struct field *field)
{
    return field->id == FIELD_UPGRADE || field->id == FIELD_CONNECTION ||
           str_starts_with(field->name, STR("sec-websocket-"));
}

/* The route's own texts may go with its site, before the last socket does. */
static void add_texts(struct buf *to, struct lcall *call)
{
    const struct request *request = &call->ex->request;
    const struct lroute  *route   = call->route;
    const char           *label   = lcall_label(call);
    char                  ip[ADDR_TEXT_BYTES];

    add_text(to, str_make(label, strlen(label) + 1));
    add_text(to, request->method);
    add_text(to, request->target);
    add_text(to, request->host);
    add_text(to, call->ex->peer ? str_of(addr_format_host(call->ex->peer, ip)) : STR("127.0.0.1"));
    add_text(to, lcall_id(call));
    add_text(to, request->version_major == 2 ? STR("HTTP/2") : STR("HTTP/1.1"));
    add_text(to, str_of(route ? route->path : ""));
    add_text(to, str_of(route && route->name ? route->name : ""));
    for (unsigned i = 0; i < request->field_count; i++) {
        if (is_of_handshake(&request->fields[i]))
            continue;
        add_text(to, request->fields[i].name);
        add_text(to, request->fields[i].value);
    }
}

struct lws_head *lws_head_new(struct lcall *call)
{
    struct lws_head *head;
    struct buf       texts;

    buf_init(&texts, HEAD_BYTES_MAX);
    add_texts(&texts, call);
    head = texts.failed ? NULL : malloc(sizeof(*head) + texts.len);
    if (head) {
        *head = (struct lws_head){ .port = call->ex->peer ? call->ex->peer->port : 0,
                                   .tls  = call->ex->tls != NULL,
                                   .len  = (uint32_t)texts.len };
        memcpy(head->at, texts.at, texts.len);
    }
    buf_fini(&texts);
    return head;
}

void lws_head_free(struct lws_head *head)
{
    free(head);
}

/* --- reading --------------------------------------------------------------------------------------- */

/* Takes the next text off REST. */
static struct str next_text(struct str *rest)
{
    struct str text;
    uint32_t   len;

    memcpy(&len, rest->at, sizeof(len));
    text  = str_make(rest->at + sizeof(len), len);
    *rest = str_from(*rest, sizeof(len) + len);
    return text;
}

static struct str text_at(const struct lws_head *head, enum text which)
{
    struct str rest = str_make(head->at, head->len);

    for (unsigned i = 0; i < which; i++)
        next_text(&rest);
    return next_text(&rest);
}

const char *lws_head_label(const struct lws_head *head)
{
    return text_at(head, TEXT_LABEL).at;
}

struct str lws_head_id(const struct lws_head *head)
{
    return text_at(head, TEXT_ID);
}

/* headers[name] = value of the table on top; several lines of one name are one, as in a request's. */
static void set_field(lua_State *L, struct str name, struct str value)
{
    lstr_push(L, name);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lstr_push(L, value);
    } else {
        lua_pushstring(L, str_is(name, STR("cookie")) ? "; " : ", ");
        lstr_push(L, value);
        lua_concat(L, 3);
    }
    lua_rawset(L, -3);
}

static void push_fields(lua_State *L, struct str rest)
{
    lua_newtable(L);
    while (rest.len) {
        struct str name  = next_text(&rest);
        struct str value = next_text(&rest);

        set_field(L, name, value);
    }
}

static void set_text(lua_State *L, const char *name, struct str text)
{
    lstr_push(L, text);
    lua_setfield(L, -2, name);
}

static void set_target(lua_State *L, struct str target)
{
    size_t question = str_find(target, '?');

    set_text(L, "target", target);
    set_text(L, "path", str_make(target.at, question));
    if (question < target.len)
        set_text(L, "query", str_from(target, question + 1));
}

void lws_head_push(lua_State *L, const struct lws_head *head)
{
    static const struct {
        enum text   which;
        const char *name;
    } TEXTS[] = {
        { TEXT_METHOD, "method" }, { TEXT_HOST, "host" },         { TEXT_IP, "ip" },
        { TEXT_ID, "id" },         { TEXT_PROTOCOL, "protocol" }, { TEXT_ROUTE, "route" }
    };
    struct str rest = str_make(head->at, head->len);
    struct str name = text_at(head, TEXT_NAME);

    lua_createtable(L, 0, 16);
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++)
        set_text(L, TEXTS[i].name, text_at(head, TEXTS[i].which));
    set_target(L, text_at(head, TEXT_TARGET));
    if (name.len)
        set_text(L, "name", name);
    lfield_set_number(L, "port", head->port);
    lfield_set_bool(L, "tls", head->tls);
    for (unsigned i = 0; i < TEXT_COUNT; i++)
        next_text(&rest);
    push_fields(L, rest);
    lua_setfield(L, -2, "headers");
}
