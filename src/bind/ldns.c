#include "bind/ldns.h"

#include <stdlib.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lerror.h"
#include "bind/lstr.h"
#include "bind/ltask.h"
#include "net/dns.h"
#include "vm/task.h"

struct question {
    struct dns_query query;
    struct task     *task;
};

static void on_answer(struct dns_query *query)
{
    task_wake(container_of(query, struct question, query)->task);
}

static void disarm(void *op)
{
    struct question *question = op;

    dns_cancel(&question->query);
    free(question);
}

static int push_list(lua_State *L, const struct dns_query *query)
{
    char text[ADDR_TEXT_BYTES];

    if (query->rc < 0)
        return lerror_nil(L, query->rc == ERR_BUSY ? "busy" : "dns", "%s", query->err.text);
    lua_createtable(L, (int)query->count, 0);
    for (unsigned i = 0; i < query->count; i++) {
        lua_pushstring(L, addr_format_host(&query->addrs[i], text));
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static int push_answer(lua_State *L, void *op)
{
    struct question *question = op;
    int              results  = push_list(L, &question->query);

    free(question);
    return results;
}

/* Known already: without a question that would have to be freed if pushing raises. */
static bool is_known(struct dns *dns, struct str name, struct dns_query *query)
{
    bool known = dns_resolve(dns, query, name, 0);

    if (!known)
        dns_cancel(query);
    return known;
}

/* resolve(name, [seconds]) -> addresses | nil, err */
static int resolve(lua_State *L)
{
    struct task     *task    = task_current(L);
    struct dns      *dns     = env_of(L)->dns;
    uint64_t         timeout = ltask_timeout_ms(L, 2);
    struct dns_query at_once = { .done = on_answer };
    struct str       name;
    struct question *question;

    name = lstr_check(L, 1);
    if (task_is_cancelled(task))
        return task_stop(L);
    if (!dns)
        return lerror_nil(L, "unavailable", "no resolver is lent to this VM");
    if (is_known(dns, name, &at_once))
        return push_list(L, &at_once);
    question = malloc(sizeof(*question));
    if (!question)
        return luaL_error(L, "not enough memory");
    *question = (struct question){ .query = { .done = on_answer }, .task = task };
    if (dns_resolve(dns, &question->query, name, 0)) /* it fails by now */
        return push_answer(L, question);
    return task_wait_for(L, question, disarm, push_answer, timeout, ltask_push_timeout);
}

int ldns_open(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, resolve);
    lua_setfield(L, -2, "resolve");
    return 1;
}
