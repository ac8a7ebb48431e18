#include "bind/lanswer.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "bind/lanswer_file.h"
#include "bind/lcall.h"
#include "bind/lcoding.h"
#include "bind/lhead.h"
#include "bind/lhttp_state.h"
#include "bind/ljson.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "bind/ltag.h"
#include "bind/lws_relay.h"
#include "bind/lws_upgrade.h"
#include "http/message.h"
#include "vm/task.h"

/* --- sending ------------------------------------------------------------------------------------------ */

bool lanswer_has_no_body(unsigned status)
{
    return status == 204 || status == 205 || status == 304;
}

static void fill(const struct lcall *call, struct answer *answer)
{
    lhead_fill(call, answer);
    answer->content_type = lanswer_has_no_body(answer->status) ? STR_NONE : lhead_type(call);
}

static void send_whole(struct lcall *call, const struct answer *answer, struct str body)
{
    int rc = exchange_answer(call->ex, answer, body);

    assert(rc != EXCHANGE_INVALID); /* lhead looked at every field */
    call->ended = call->committed = true;
}

bool lanswer_push_rest(struct lcall *call)
{
    while (call->rest.len) {
        struct iovec iov = { (void *)call->rest.at, call->rest.len };
        ssize_t      n   = exchange_body(call->ex, &iov, 1);

        if (n == EXCHANGE_WAIT)
            return false;
        if (n < 0)
            call->rest = STR_NONE;
        else
            call->rest = str_from(call->rest, (size_t)n);
    }
    return true;
}

static void send_rest_and_end(struct lcall *call)
{
    if (lanswer_push_rest(call) && !call->ended) {
        call->ended = true;
        exchange_end(call->ex, NULL, 0);
    }
}

/* BODY must live as long as the call. */
static void send_in_pieces(struct lcall *call, const struct answer *answer, struct str body)
{
    call->rest = body;
    if (exchange_head(call->ex, answer, body.len) < 0)
        call->rest = STR_NONE;
    call->committed = true;
    send_rest_and_end(call);
}

static enum lanswer_outcome send_empty(struct lcall *call)
{
    struct answer answer;

    fill(call, &answer);
    send_whole(call, &answer, STR_NONE);
    return LANSWER_SENT;
}

static enum lanswer_outcome send_text(struct lcall *call, lua_State *L, int index)
{
    struct answer answer;
    struct str    body;

    body = lstr_at(L, index);
    if (ltag_settles(call, body))
        return send_empty(call);
    fill(call, &answer);
    if (body.len <= LANSWER_PIECE_BYTES) {
        send_whole(call, &answer, body);
    } else {
        lua_pushvalue(L, index);
        lcall_keep(L, call, ANCHOR_RECORDED);
        send_in_pieces(call, &answer, body);
    }
    return LANSWER_SENT;
}

static enum lanswer_outcome misuse(lua_State *L, struct err *err)
{
    err_set(err, ERR_INVALID, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    return LANSWER_MISUSE;
}

static enum lanswer_outcome send_json(struct lcall *call, lua_State *L, int index, struct err *err)
{
    struct buf   *text = lhttp_scratch(call->http);
    struct answer answer;

    buf_clear(text);
    switch (ljson_encode(L, index, text, 0)) {
    case LJSON_OK: break;
    case LJSON_MISUSE: return misuse(L, err);
    case LJSON_CALLS: return LANSWER_CALLS;
    case LJSON_TOO_LARGE:
        err_set(err, ERR_TOO_LARGE, "the answer is over %d MiB as JSON: stream it",
                LHTTP_SCRATCH_BYTES_MAX >> 20);
        return LANSWER_MISUSE;
    }
    if (ltag_settles(call, buf_str(text)))
        return send_empty(call);
    fill(call, &answer);
    if (text->len <= LANSWER_PIECE_BYTES) {
        send_whole(call, &answer, buf_str(text));
    } else {
        call->encoded  = lcall_buf(call, LHTTP_SCRATCH_BYTES_MAX);
        *call->encoded = *text;
        buf_init(text, LHTTP_SCRATCH_BYTES_MAX);
        send_in_pieces(call, &answer, buf_str(call->encoded));
    }
    return LANSWER_SENT;
}

/* Its bytes live as long as the call. */
static enum lanswer_outcome send_ready(struct lcall *call)
{
    struct answer answer;

    fill(call, &answer);
    if (call->ready.len <= LANSWER_PIECE_BYTES)
        send_whole(call, &answer, call->ready);
    else
        send_in_pieces(call, &answer, call->ready);
    return LANSWER_SENT;
}

static enum lanswer_outcome send_file(struct lcall *call)
{
    struct lfile *found = call->file;
    struct answer answer;

    lanswer_file_decide(call);
    fill(call, &answer);
    file_answer_send(call->ex, &answer, &found->plan, &found->file);
    found->file.fd = -1;
    call->ended = call->committed = true;
    return LANSWER_SENT;
}

/* A status that middleware has set since is an answer of its own. */
static enum lanswer_outcome send_socket(struct lcall *call, lua_State *L, int index)
{
    if (call->status)
        return send_empty(call);
    if (lws_relay_is(L, index) ? lws_relay_upgrade(call, L, index) : lws_upgrade(call, L, index))
        call->ended = call->committed = true;
    else
        lanswer_plain(call, 503);
    return LANSWER_SENT;
}

enum lanswer_outcome lanswer_send(struct lcall *call, lua_State *L, int index, struct err *err)
{
    bool     is_later  = call->recorded == RECORDED_FILE || ltag_waits_for_body(call);
    bool     is_ready  = call->ready.at != NULL; /* they were asked before it was coded */
    unsigned condition = is_later || is_ready ? 0 : lhead_condition(call);

    assert(!call->committed && call->recorded != RECORDED_STREAM);
    if (call->recorded == RECORDED_SOCKET)
        return send_socket(call, L, index);
    if (condition)
        lhead_take_condition(call, condition);
    if (condition || lanswer_has_no_body(call->status))
        return send_empty(call);
    if (is_ready)
        return send_ready(call);
    switch (call->recorded) {
    case RECORDED_TEXT: return send_text(call, L, index);
    case RECORDED_JSON: return send_json(call, L, index, err);
    case RECORDED_FILE: return send_file(call);
    case RECORDED_EMPTY:
    case RECORDED_NOTHING:
    case RECORDED_SOCKET:
    case RECORDED_STREAM: break;
    }
    return send_empty(call);
}

void lanswer_plain(struct lcall *call, unsigned status)
{
    char          text[256];
    struct str    reason = status_reason(status);
    struct answer answer = { .status = status, .content_type = STR("application/problem+json") };
    int           len;

    if (call->ended)
        return;
    if (call->committed) {
        lanswer_abort(call);
        return;
    }
    len = snprintf(
        text, sizeof(text),
        "{\"type\":\"about:blank\",\"title\":\"%.*s\",\"status\":%u,\"request_id\":\"%.*s\"}",
        STR_ARG(reason), status, STR_ARG(lcall_id(call)));
    send_whole(call, &answer, str_make(text, (size_t)len));
}

/* They stand behind the last chunk (RFC 9112, 7.1.2), or the last DATA (RFC 9113, 8.1). */
static bool can_have_trailers(const struct lcall *call)
{
    const struct request *request = &call->ex->request;

    return call->trailers.at && call->announced == ANSWER_LENGTH_UNKNOWN &&
           (request->version_major > 1 || request->version_minor > 0);
}

bool lanswer_commit(struct lcall *call)
{
    struct answer answer;
    unsigned condition = call->coder ? 0 : lhead_condition(call); /* asked before it was coded */

    if (condition)
        lhead_take_condition(call, condition);
    if (call->recorded == RECORDED_NOTHING)
        call->recorded = RECORDED_STREAM;
    if (lanswer_has_no_body(call->status))
        call->announced = ANSWER_LENGTH_UNKNOWN;
    else if (can_have_trailers(call))
        lhead_add_trailer(call);
    fill(call, &answer);
    call->committed = true;
    if (call->task) /* the time limit was for the head */
        task_set_deadline(call->task, 0);
    return exchange_head(call->ex, &answer, call->status == 205 ? 0 : call->announced) == 0;
}

bool lanswer_end(struct lcall *call, const struct field *trailers, unsigned trailer_count)
{
    bool is_short = call->announced != ANSWER_LENGTH_UNKNOWN &&
                    call->ex->sent_bytes < call->announced && !call->gone &&
                    call->ex->request.method_id != ROUTE_HEAD;

    if (is_short || call->coder) { /* the end of what was coded is missing */
        lanswer_abort(call);
        return false;
    }
    call->ended = true;
    exchange_end(call->ex, trailers, trailer_count);
    return true;
}

void lanswer_abort(struct lcall *call)
{
    call->rest  = STR_NONE;
    call->ended = true;
    exchange_abort(call->ex, GONE_ERROR);
}

/* Without a writer the task is over, and what is left goes out by itself; or a coder has flushed, and
 * its task goes on. */
void lanswer_room(struct lcall *call)
{
    if (!call->writer) {
        if (call->coder)
            lanswer_push_rest(call);
        else if (call->rest.len)
            send_rest_and_end(call);
        return;
    }
    if (call->woken || !lanswer_push_rest(call))
        return;
    call->woken = true; /* it is the writer until it has come back: it may be cancelled before */
    task_wake(call->writer);
    lanswer_wake_ender(call);
}

void lanswer_wake_ender(struct lcall *call)
{
    struct task *ender = call->ender;

    call->ender = NULL;
    if (ender)
        task_wake(ender);
}

/* --- taking back ----------------------------------------------------------------------------------- */

void lanswer_close_file(struct lcall *call)
{
    if (call->file && call->file->file.fd >= 0)
        close(call->file->file.fd);
    call->file = NULL;
}

static bool begins(struct str name, struct str with)
{
    return name.len > with.len && strncasecmp(name.at, with.at, with.len) == 0;
}

/* Content-Encoding, Content-Range ...; a policy for scripts goes for whatever takes the body's place. */
static bool describes_body(struct str name)
{
    static const struct str NAMES[] = { STR_INIT("etag"), STR_INIT("last-modified"),
                                        STR_INIT("cache-control"), STR_INIT("expires"),
                                        STR_INIT("location") };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (str_is_nocase(name, NAMES[i]))
            return true;
    return begins(name, STR("content-")) && !begins(name, STR("content-security-"));
}

void lanswer_drop(struct lcall *call, lua_State *L)
{
    unsigned kept = 0;

    lcall_forget(L, call, ANCHOR_RECORDED);
    lanswer_close_file(call);
    lcoding_drop(call);
    call->recorded  = RECORDED_NOTHING;
    call->status    = 0;
    call->type      = STR_NONE;
    call->announced = ANSWER_LENGTH_UNKNOWN;
    for (unsigned i = 0; i < call->field_count; i++)
        if (!describes_body(call->fields[i].name))
            call->fields[kept++] = call->fields[i];
    call->field_count = kept;
}
