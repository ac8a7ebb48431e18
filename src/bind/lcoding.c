#include "bind/lcoding.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/buf.h"
#include "base/coding.h"
#include "base/compiler.h"
#include "base/err.h"
#include "bind/env.h"
#include "bind/lanswer_file.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lhead.h"
#include "bind/lhttp_state.h"
#include "bind/ljob.h"
#include "bind/ljson.h"
#include "bind/lstr.h"
#include "bind/ltag.h"
#include "http/codings.h"

enum {
    AT_ONCE_BYTES =
        64 * 1024, /* more is for a thread: it would hold up the loop for milliseconds */
    FILE_BYTES_MAX =
        8 * 1024 * 1024, /* larger files go out as they are: they are read into memory */
    TYPES_MAX = 64,
};

/* --- rules ------------------------------------------------------------------------------------------------ */

/* Never freed before the VM: calls point to it. */
struct lcoding_rules {
    size_t          bytes_min;
    enum codings_id offers[CODINGS_COUNT];
    unsigned        offer_count;
    unsigned        type_count; /* 0: what codings_help() says */
    struct str      types[];    /* the strings stand in a table of the registry */
};

static struct lcoding_rules *new_rules(lua_State *L, unsigned type_count)
{
    struct lcoding_rules *rules =
        lua_newuserdata(L, sizeof(*rules) + type_count * sizeof(struct str));

    *rules = (struct lcoding_rules){ .type_count = type_count };
    lua_pushvalue(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return rules;
}

/* coding_rules(min, { "zstd", ... }, [{ "text/html", "image/", "+json" }]) -> rules */
static int coding_rules(lua_State *L)
{
    size_t                bytes_min = (size_t)luaL_checknumber(L, 1);
    unsigned              types     = lua_istable(L, 3) ? (unsigned)lua_objlen(L, 3) : 0;
    struct lcoding_rules *rules;

    luaL_checktype(L, 2, LUA_TTABLE);
    if (types > TYPES_MAX)
        return lerror_misuse(L, "at most %d types can be listed", TYPES_MAX);
    rules            = new_rules(L, types);
    rules->bytes_min = bytes_min;
    for (unsigned i = 0; i < CODINGS_COUNT; i++) {
        lua_rawgeti(L, 2, (int)i + 1);
        if (lua_isstring(L, -1) && codings_named(lstr_at(L, -1), &rules->offers[i]))
            rules->offer_count++;
        lua_pop(L, 1);
    }
    for (unsigned i = 0; i < types; i++) {
        lua_rawgeti(L, 3, (int)i + 1);
        rules->types[i] = lstr_check(L, -1);
        luaL_ref(L, LUA_REGISTRYINDEX);
    }
    return 1;
}

/* use_coding(res, rules): its answer is coded as they say. The last ones count. */
static int use_coding(lua_State *L)
{
    struct lcall *call = lcall_check(L, 1);

    call->coding_rules = lua_touserdata(L, 2);
    return 0;
}

/* The type itself, its beginning, or its end behind a "+". */
static bool fits(struct str pattern, struct str type)
{
    size_t len = pattern.len;

    if (len && pattern.at[0] == '+')
        return type.len > len && str_is_nocase(str_from(type, type.len - len), pattern);
    if (len && pattern.at[len - 1] == '/')
        return type.len > len && strncasecmp(type.at, pattern.at, len) == 0;
    return str_is_nocase(type, pattern);
}

/* Events are never held back, whatever an app lists. */
static bool takes_type(const struct lcoding_rules *rules, struct str media_type)
{
    struct str type = codings_bare_type(media_type);

    if (!rules->type_count)
        return codings_help(type);
    for (unsigned i = 0; i < rules->type_count; i++)
        if (fits(rules->types[i], type))
            return !str_is_nocase(type, STR("text/event-stream"));
    return false;
}

/* --- whether ------------------------------------------------------------------------------------------------- */

/* RFC 9111, 5.2.2.6. */
static bool forbids_transforms(const struct lcall *call)
{
    for (unsigned i = 0; i < call->field_count; i++) {
        struct str list = call->fields[i].value, element;

        if (!str_is_nocase(call->fields[i].name, STR("cache-control")))
            continue;
        while (str_next(&list, ',', &element))
            if (str_is_nocase(str_trim(element), STR("no-transform")))
                return true;
    }
    return false;
}

static bool has_whole_body(const struct lcall *call)
{
    unsigned status = call->status;

    return status != 204 && status != 205 && status != 206 && status != 304 &&
           !lhead_get(call, STR("Content-Range")).at;
}

/* The coding that the client likes best, if the answer is one that may be coded; Vary is set wherever
 * another client could be answered otherwise. */
static struct codings_choice choose(struct lcall *call)
{
    const struct lcoding_rules *rules = call->coding_rules;
    struct codings_choice       none  = { CODINGS_IDENTITY, false };
    struct str                  type  = lhead_type(call);
    struct err                  err;

    if (!type.at || !has_whole_body(call) || forbids_transforms(call) || !takes_type(rules, type))
        return none;
    if (lhead_add_vary(call, STR("Accept-Encoding"), &err) < 0)
        return none;
    if (lhead_get(call, STR("Content-Encoding")).at)
        return none;
    return codings_choose(&call->ex->request, rules->offers, rules->offer_count);
}

static bool is_worth_it(const struct lcall *call, struct codings_choice choice, uint64_t len)
{
    return len && (len >= call->coding_rules->bytes_min || choice.forced);
}

/* --- the head -------------------------------------------------------------------------------------------------- */

/* A strong tag names bytes, and those are others now (RFC 9110, 8.8.3.3). */
static void weaken_tag(struct lcall *call)
{
    struct str tag = lhead_get(call, STR("ETag"));
    struct err err;
    char      *to;

    if (!tag.at || str_starts_with(tag, STR("W/")))
        return;
    to = arena_alloc(&call->ex->arena, tag.len + 2);
    memcpy(to, "W/", 2);
    memcpy(to + 2, tag.at, tag.len);
    lhead_set(call, STR("ETag"), str_make(to, tag.len + 2), &err);
}

/* False: there is no room for one more field. */
static bool set_head(struct lcall *call, enum codings_id id)
{
    struct err err;

    if (lhead_set(call, STR("Content-Encoding"), codings_name(id), &err) < 0)
        return false;
    weaken_tag(call);
    lhead_remove(call, STR("Content-Length"));
    lhead_remove(call, STR("Accept-Ranges"));
    return true;
}

/* --- finished bodies ----------------------------------------------------------------------------------------------- */

static bool code_all(struct coding *coding, struct str text, struct buf *out)
{
    enum coding_step step;
    size_t           made;

    do {
        char *to = buf_reserve(out, text.len / 2 + 256);

        if (!to)
            return false;
        step = coding_run(coding, &text, true, to, out->room - out->len, &made);
        out->len += made;
    } while (step == CODING_FULL);
    return step == CODING_DONE;
}

/* The worker's writer of that coding, as new. It is made once, for that takes longer than a small
 * body does. */
static struct coding *take_writer(struct lhttp *http, enum codings_id id)
{
    struct coding *writer = http->writers[id];

    http->writers[id] = NULL;
    if (writer && coding_reset(writer))
        return writer;
    coding_free(writer);
    return codings_writer(id);
}

static void send_as(struct lcall *call, enum codings_id id, struct str coded)
{
    if (set_head(call, id))
        call->ready = arena_copy(&call->ex->arena, coded);
}

static void code_now(struct lcall *call, struct codings_choice choice, struct str text)
{
    struct lhttp  *http   = call->http;
    struct coding *writer = take_writer(http, choice.id);

    buf_clear(&http->coded);
    if (writer && code_all(writer, text, &http->coded) &&
        (http->coded.len < text.len || choice.forced))
        send_as(call, choice.id, buf_str(&http->coded));
    http->writers[choice.id] = writer;
}

struct coding_job {
    struct ljob           ljob;
    struct codings_choice choice;
    struct buf            out;
    int                   fd; /* of a file that is to be read, or -1 */
    bool                  done;
    size_t                len;
    char                  text[];
};

static bool read_file(struct coding_job *job)
{
    size_t there = 0;

    while (job->fd >= 0 && there < job->len) {
        ssize_t n = pread(job->fd, job->text + there, job->len - there, (off_t)there);

        if (n <= 0)
            return false;
        there += (size_t)n;
    }
    return true;
}

static void work(struct ljob *ljob)
{
    struct coding_job *job    = container_of(ljob, struct coding_job, ljob);
    struct coding     *writer = codings_writer(job->choice.id);

    job->done = writer && read_file(job) &&
                code_all(writer, str_make(job->text, job->len), &job->out) &&
                (job->out.len < job->len || job->choice.forced);
    coding_free(writer);
}

/* Not done: it goes out as it is. */
static int push_nothing(lua_State *L, struct ljob *ljob)
{
    struct coding_job *job  = container_of(ljob, struct coding_job, ljob);
    struct lcall      *call = lcall_check(L, 1);

    if (!job->done || call->committed || !set_head(call, job->choice.id))
        return 0;
    call->encoded  = lcall_buf(call, SIZE_MAX / 2);
    *call->encoded = job->out;
    call->ready    = buf_str(&job->out);
    buf_init(&job->out, 0);
    return 0;
}

static void free_job(struct ljob *ljob)
{
    struct coding_job *job = container_of(ljob, struct coding_job, ljob);

    if (job->fd >= 0)
        close(job->fd);
    buf_fini(&job->out);
    free(job);
}

/* `return code_on_thread(...)`. TEXT at NULL: what FD has. */
static int code_on_thread(lua_State *L, struct codings_choice choice, struct str text, size_t len,
                          int fd)
{
    struct coding_job *job = ljob_new(L, sizeof(*job) + len);

    job->ljob   = (struct ljob){ .work = work, .push = push_nothing, .free = free_job };
    job->choice = choice;
    job->fd     = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    job->len    = fd >= 0 && job->fd < 0 ? 0 : len;
    buf_init(&job->out, SIZE_MAX / 2); /* what goes in bounds what comes out */
    if (text.at)
        memcpy(job->text, text.at, len);
    return ljob_start(L, &job->ljob, env_of(L)->lane_cpu);
}

/* A condition of the request answers it without the body. */
static bool needs_no_body(struct lcall *call, struct str text)
{
    bool by_made_tag = ltag_settles(call, text);

    if (by_made_tag)
        call->recorded = RECORDED_EMPTY;
    else if (!lhead_condition(call))
        return false;
    call->ready = STR_NONE;
    return true;
}

static int code_text(lua_State *L, struct lcall *call, struct codings_choice choice,
                     struct str text)
{
    bool is_coded = is_worth_it(call, choice, text.len);

    if (needs_no_body(call, text)) {
        if (is_coded)
            weaken_tag(call);
        return 0;
    }
    if (!is_coded)
        return 0;
    if (text.len > AT_ONCE_BYTES)
        return code_on_thread(L, choice, text, text.len, -1);
    code_now(call, choice, text);
    return 0;
}

/* What is too small to be coded is kept as well: encoding it again would cost more. */
static int code_json(lua_State *L, struct lcall *call, struct codings_choice choice)
{
    struct buf *text = lhttp_scratch(call->http);

    switch (ljson_encode(L, 3, text, 0)) {
    case LJSON_OK: break;
    case LJSON_CALLS: lua_pushboolean(L, 1); return 1;
    case LJSON_MISUSE:
    case LJSON_TOO_LARGE: return 0; /* told when it is to be sent */
    }
    if (text->len <= AT_ONCE_BYTES)
        call->ready = arena_copy(&call->ex->arena, buf_str(text));
    return code_text(L, call, choice, buf_str(text));
}

static int code_file(lua_State *L, struct lcall *call, struct codings_choice choice)
{
    const struct lfile *file = call->file;
    uint64_t            len  = file->plan.length;

    lanswer_file_decide(call);
    if (file->plan.status != 200 || file->file.fd < 0 || file->file.coding != CODINGS_IDENTITY ||
        len > FILE_BYTES_MAX || !is_worth_it(call, choice, len))
        return 0;
    return code_on_thread(L, choice, STR_NONE, (size_t)len, file->file.fd);
}

/* --- streams ---------------------------------------------------------------------------------------------------------- */

static void begin_stream(struct lcall *call, struct codings_choice choice)
{
    unsigned       condition = lhead_condition(call);
    struct lcoder *coder;
    struct coding *writer;

    if (call->announced != ANSWER_LENGTH_UNKNOWN && !is_worth_it(call, choice, call->announced))
        return;
    if (condition == 304) { /* it bears the tag that a 200 would have */
        call->status = condition;
        weaken_tag(call);
    }
    if (condition)
        return;
    writer = codings_writer(choice.id);
    if (!writer || !set_head(call, choice.id)) {
        coding_free(writer);
        return;
    }
    coder = arena_alloc(&call->ex->arena, sizeof(*coder));
    *coder =
        (struct lcoder){ .coding = writer, .out = lcall_buf(call, SIZE_MAX / 2), .call = call };
    call->coder = coder;
}

void lcoding_drop(struct lcall *call)
{
    struct lcoder *coder = call->coder;

    call->ready = STR_NONE;
    call->coder = NULL;
    if (!coder)
        return;
    if (coder->begun)
        later_cancel(&coder->flush);
    coding_free(coder->coding);
}

/* --- for Lua ------------------------------------------------------------------------------------------------------------ */

/* code(res, writes) -> true: a __tojson stands in the recorded value, so record plain data and call
 * again. Behind all hooks; may wait. WRITES: the head is about to go out and the body will be written. */
static int code(lua_State *L)
{
    struct lcall         *call   = lcall_check(L, 1);
    bool                  writes = lua_toboolean(L, 2);
    struct codings_choice choice;

    if (!call->coding_rules || call->committed || call->ready.at || call->coder)
        return 0;
    if (!writes && (call->recorded == RECORDED_NOTHING || call->recorded == RECORDED_EMPTY))
        return 0;
    choice = choose(call);
    if (choice.id == CODINGS_IDENTITY)
        return 0;
    lua_settop(L, 2);
    lcall_push_kept(L, call, ANCHOR_RECORDED);
    switch (writes ? RECORDED_STREAM : call->recorded) {
    case RECORDED_TEXT: return code_text(L, call, choice, lstr_at(L, 3));
    case RECORDED_JSON: return code_json(L, call, choice);
    case RECORDED_FILE: return code_file(L, call, choice);
    case RECORDED_STREAM: begin_stream(call, choice); break;
    case RECORDED_NOTHING:
    case RECORDED_SOCKET:
    case RECORDED_EMPTY: break;
    }
    return 0;
}

/* is_coding(res) -> boolean: what is written is compressed */
static int is_coding(lua_State *L)
{
    lua_pushboolean(L, lcall_check(L, 1)->coder != NULL);
    return 1;
}

void lcoding_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "coding_rules", coding_rules },
        { "use_coding", use_coding },
        { "code", code },
        { "is_coding", is_coding },
        { NULL, NULL },
    };

    luaL_register(L, NULL, FUNCTIONS);
}
