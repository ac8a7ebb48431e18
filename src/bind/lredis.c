/* A call of Lua's is a struct lcommand on the heap, since it may outlive the task that asked: then it is
 * cancelled, and frees itself when its replies have come. */
#include "bind/lredis.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lclass.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lredis_bus.h"
#include "bind/lredis_client.h"
#include "bind/lredis_reply.h"
#include "bind/lredis_sub.h"
#include "bind/lrows.h"
#include "bind/lstr.h"
#include "data/redis.h"
#include "data/redis_call.h"
#include "data/redis_command.h"
#include "data/redis_conn.h"
#include "vm/task.h"
#include "vm/vm.h"

#define LEASE_METATABLE "srv.redis.Lease"

enum { BATCH_COMMANDS_MAX = 100000 };

struct lcommand {
    struct redis_call    call;
    struct redis_client *client;
    struct task         *task; /* that waits; NULL: nobody */
    bool                 finished;
};

/* Held by its task from its first call on: the connection goes when either ends. */
struct llease {
    struct held          held;
    struct redis_client *client; /* NULL: not begun, or over */
    struct redis_seat   *seat;   /* NULL: a call is under way, or there was none */
};

/* --- commands: one call of Lua's --------------------------------------------------------------------- */

static void free_command(struct redis_call *call)
{
    redis_call_fini(call);
    free(container_of(call, struct lcommand, call));
}

static void on_done(struct redis_call *call)
{
    struct lcommand *command = container_of(call, struct lcommand, call);

    command->finished = true;
    task_wake(command->task);
}

/* Raises on lack of memory. */
static struct lcommand *new_command(lua_State *L, struct redis_client *client)
{
    struct lcommand *command = malloc(sizeof(*command));

    if (!command)
        luaL_error(L, "not enough memory");
    command->client   = client;
    command->finished = false;
    redis_call_init(&command->call);
    command->call.done = on_done;
    command->call.drop = free_command;
    return command;
}

static void disarm(void *op)
{
    struct lcommand *command = op;

    command->task = NULL;
    if (!command->finished) {
        redis_cancel(command->client, &command->call);
        return;
    }
    if (command->call.seat)
        redis_give_up(command->client, command->call.seat);
    free_command(&command->call);
}

/* nil, err; the command is freed. */
static int push_fault(lua_State *L, struct lcommand *command)
{
    int count = lrows_push_fault(L, &command->call.fault);

    free_command(&command->call);
    return count;
}

/* `return start(...)`: the end of a lua_CFunction. */
static int start(lua_State *L, struct lcommand *command, task_push_fn push)
{
    struct task *task = task_current(L);

    command->task = task;
    if (command->call.request.failed)
        fault_set(&command->call.fault, "too_large", "more than %d MiB in one command for Redis",
                  REDIS_REQUEST_BYTES_MAX / 1024 / 1024);
    if (command->call.request.failed || redis_start(command->client, &command->call) != 0) {
        if (command->call.seat) /* amid a transaction, which is over */
            redis_give_up(command->client, command->call.seat);
        return push_fault(L, command);
    }
    return task_wait(L, command, disarm, push);
}

static int push_reply(lua_State *L, void *op)
{
    struct lcommand *command = op;
    struct str       rest    = buf_str(&command->call.reply);
    int              count;

    if (fault_is_set(&command->call.fault))
        return push_fault(L, command);
    count = lredis_push_reply(L, &rest);
    free_command(&command->call);
    return count;
}

static int push_replies(lua_State *L, void *op)
{
    struct lcommand *command = op;
    struct str       rest    = buf_str(&command->call.reply);

    if (fault_is_set(&command->call.fault))
        return push_fault(L, command);
    lua_newtable(L);
    for (int i = 1; rest.len; i++) {
        lredis_push_element(L, &rest);
        lua_rawseti(L, -2, i);
    }
    free_command(&command->call);
    return 1;
}

/* --- one command ---------------------------------------------------------------------------------------- */

static bool has_block(lua_State *L, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (lua_type(L, i) == LUA_TSTRING && str_is_nocase(lstr_at(L, i), STR("BLOCK")))
            return true;
    return false;
}

/* The words stand at FIRST to LAST. Raises what may not be asked for. */
static enum redis_kind check_command(lua_State *L, int first, int last)
{
    const char     *why, *wrong = lredis_check_words(L, first, last);
    struct str      word, argument;
    enum redis_kind kind;
    bool            blocks;

    if (wrong)
        lerror_misuse(L, "%s: %s",
                      lua_type(L, first) == LUA_TSTRING ? lua_tostring(L, first) : "redis:call",
                      wrong);
    word = lstr_at(L, first);
    argument =
        last > first && lua_type(L, first + 1) == LUA_TSTRING ? lstr_at(L, first + 1) : STR_NONE;
    blocks = redis_command_may_block(word) && has_block(L, first + 1, last);
    kind   = redis_command_kind(word, argument, blocks, &why);
    if (kind == REDIS_REFUSED)
        lerror_misuse(L, "%s: %s", word.at, why);
    return kind;
}

/* client:call(command, ...) -> reply | nil, err */
static int client_call(lua_State *L)
{
    struct redis_client *client = lredis_check_client(L, 1);
    int                  last   = lua_gettop(L);
    enum redis_kind      kind   = check_command(L, 2, last);
    struct lcommand     *command;

    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    command             = new_command(L, client);
    command->call.alone = command->call.waits = kind == REDIS_BLOCKING;
    lredis_add_words(L, &command->call.request, 2, last);
    return start(L, command, push_reply);
}

/* --- batches ------------------------------------------------------------------------------------------- */

/* Pushes the words of the command on top; their number is returned. */
static int unpack(lua_State *L)
{
    int table = lua_gettop(L);
    int count = (int)lua_objlen(L, table);

    if (!lua_checkstack(L, count + 8))
        luaL_error(L, "a command of %d words is too long", count);
    for (int i = 1; i <= count; i++)
        lua_rawgeti(L, table, i);
    return count;
}

/* Everything is looked at before memory is owned. */
static int check_batch(lua_State *L, int index)
{
    int count = (int)lua_objlen(L, index);

    luaL_argcheck(L, count >= 1 && count <= BATCH_COMMANDS_MAX, index, "1 to 100,000 commands");
    luaL_checkstack(L, 8, NULL);
    for (int i = 1; i <= count; i++) {
        int top = lua_gettop(L);
        int words;

        lua_rawgeti(L, index, i);
        luaL_checktype(L, -1, LUA_TTABLE);
        words = unpack(L);
        if (words == 0 || lua_type(L, top + 2) != LUA_TSTRING ||
            !redis_command_is_multi(lstr_at(L, top + 2)))
            check_command(L, top + 2, top + 1 + words);
        lua_settop(L, top);
    }
    return count;
}

static struct lcommand *make_batch(lua_State *L, struct redis_client *client, int index)
{
    int              count   = check_batch(L, index);
    int              top     = lua_gettop(L);
    struct lcommand *command = new_command(L, client);

    command->call.replies = (unsigned)count;
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, index, i);
        lredis_add_words(L, &command->call.request, top + 2, top + 1 + unpack(L));
        lua_settop(L, top);
    }
    return command;
}

/* client:batch(commands) -> replies | nil, err */
static int client_batch(lua_State *L)
{
    struct redis_client *client = lredis_check_client(L, 1);

    luaL_checktype(L, 2, LUA_TTABLE);
    if (task_is_cancelled(task_current(L)))
        return task_stop(L);
    return start(L, make_batch(L, client, 2), push_replies);
}

/* --- leases ---------------------------------------------------------------------------------------------- */

static void end_lease(struct llease *llease)
{
    struct redis_client *client = llease->client;

    if (!client)
        return;
    task_unhold(&llease->held);
    if (llease->seat)
        redis_give_up(client, llease->seat);
    llease->client = NULL;
    llease->seat   = NULL;
    redis_client_let_go(client);
}

static void release_lease(struct held *held)
{
    end_lease(container_of(held, struct llease, held));
}

/* lease() -> lease */
static int new_lease(lua_State *L)
{
    struct llease *llease = lclass_new(L, LEASE_METATABLE, sizeof(*llease));

    llease->held.release = release_lease;
    list_init(&llease->held.link);
    return 1;
}

static struct llease *check_lease(lua_State *L, int index)
{
    return luaL_checkudata(L, index, LEASE_METATABLE);
}

/* lease:close() */
static int lease_close(lua_State *L)
{
    end_lease(check_lease(L, 1));
    return 0;
}

static int push_leased(lua_State *L, void *op)
{
    struct lcommand *command = op;
    struct llease   *llease  = check_lease(L, 1);

    llease->seat       = command->call.seat;
    command->call.seat = NULL;
    if (!llease->seat)
        end_lease(llease);
    return push_replies(L, op);
}

/* lease:batch(client, commands, last) -> replies | nil, err */
static int lease_batch(lua_State *L)
{
    struct llease       *llease = check_lease(L, 1);
    struct redis_client *client = lredis_check_client(L, 2);
    struct task         *task   = task_current(L);
    struct lcommand     *command;

    luaL_checktype(L, 3, LUA_TTABLE);
    if (task_is_cancelled(task))
        return task_stop(L);
    if (llease->client && (llease->client != client || !llease->seat))
        return lerror_misuse(L, "redis:multi: the transaction is used by two tasks at once");
    command = make_batch(L, client, 3);
    if (!llease->client) {
        redis_client_hold(client);
        llease->client = client;
        task_hold(task, &llease->held);
    }
    command->call.alone = true;
    command->call.keeps = !lua_toboolean(L, 4);
    command->call.seat  = llease->seat;
    llease->seat        = NULL;
    return start(L, command, push_leased);
}

/* --- the module -------------------------------------------------------------------------------------------- */

/* stats() -> { connections, pending, calls, lost } */
static int stats(lua_State *L)
{
    struct redis_stats now = { .connections = 0 };

    if (env_of(L)->redis)
        redis_stats(env_of(L)->redis, &now);
    lua_createtable(L, 0, 5);
    lfield_set_number(L, "connections", now.connections);
    lfield_set_number(L, "pending", now.pending);
    lfield_set_number(L, "calls", (lua_Number)now.calls);
    lfield_set_number(L, "lost", (lua_Number)now.lost);
    return 1;
}

int lredis_open(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = { { "lease", new_lease },
                                          { "stats", stats },
                                          { NULL, NULL } };
    static const luaL_Reg CLIENT[]    = { { "call", client_call },
                                          { "batch", client_batch },
                                          { NULL, NULL } };
    static const luaL_Reg LEASE[]     = {
            { "batch", lease_batch }, { "close", lease_close }, { "__gc", lease_close }, { NULL, NULL }
    };

    lclass_add(L, LEASE_METATABLE, LEASE);
    lua_newtable(L);
    luaL_setfuncs(L, FUNCTIONS, 0);
    lredis_client_add(L, CLIENT);
    lredis_sub_add(L);
    lredis_bus_add(L);
    return 1;
}
