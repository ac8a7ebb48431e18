/* tests/support/http1_app.c - the app that the HTTP/1.1 conversations are held with (tests/http1,
 * tests/wire), on the bare wire: no Lua, so what fails here is the wire's.
 *
 *     http1_app [--port N] [--connections N] [--head-ms N] [--body-ms N] [--keep-alive-ms N] [--root FOLDER] ...
 *
 * Prints "listening on http://127.0.0.1:PORT". SIGTERM drains it, a second one ends it. Every
 * answer that the wire made by itself is told on standard error.
 *
 *     /               GET   "ok"
 *     /echo           any   the request's body; X-Method, X-Len
 *     /q              GET   the query as JSON
 *     /h/NAME         GET   that request field, or 404
 *     /p/REST         GET   the rest, percent-decoded
 *     /slowread       POST  reads 64 KiB at a time with a pause of 5 ms; the body's length
 *     /big            GET   1 MiB of "a"
 *     /zeros          GET   4 MiB of a file that holds nothing else
 *     /stream         GET   five parts, 10 ms apart, of a length not said before
 *     /trailer        GET   the same with a trailer field
 *     /hints          GET   a 103 before the answer
 *     /cut            GET   an answer that is given up in the middle
 *     /cut-now        GET   the same at once
 *     /silent         GET   never answers
 *     /stubborn       GET   never answers, and goes on for 50 ms when nobody waits any more
 *     /stubborn-max   GET   how many of these there were at a time
 *     /forget         GET   lets go without an answer
 *     /unread         POST  answers at once and leaves the body where it is
 *     /tunnel         GET   who asks for an upgrade to "echo" gets all bytes back, to "bye" the end; else 426
 *     /static/PATH    GET   files beneath --root FOLDER
 *     /ext/header     GET   X-Out: v      (query parameter v, whatever it holds)
 *     /ext/redirect   GET   302, Location: to
 *     /ext/cookie     GET   Set-Cookie: a=v; Path=/ */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "http/channel.h"
#include "http/exchange.h"
#include "http/file_answer.h"
#include "http/message.h"
#include "http/serve.h"
#include "http/url.h"
#include "support/wire_app.h"

enum {
    BODY_BYTES_MAX = 8 * 1024 * 1024,
    BIG_BYTES      = 1024 * 1024,
    ZERO_BYTES     = 4 * BIG_BYTES,
    PARTS          = 5
};

struct handler {
    const char *path; /* one that ends in "/" takes what follows, but for "/" itself */
    const char *methods;
    void (*start)(struct exchange *ex, struct str rest);
};

/* --- answering ------------------------------------------------------------------------------------- */

static void answer(struct exchange *ex, unsigned status, const struct field *fields, unsigned count,
                   const char *type, struct str body)
{
    struct answer head = { status, fields, count, str_of(type) };

    if (exchange_answer(ex, &head, body) == EXCHANGE_INVALID) {
        head = (struct answer){ 500, NULL, 0, STR("text/plain") };
        exchange_answer(ex, &head, STR("a value may not go into a field"));
    }
    exchange_work_let_go(ex);
}

static void answer_text(struct exchange *ex, unsigned status, struct str body)
{
    answer(ex, status, NULL, 0, "text/plain", body);
}

static void start_root(struct exchange *ex, struct str rest)
{
    answer_text(ex, 200, STR("ok"));
}

/* --- the request's parts ------------------------------------------------------------------------------ */

static void start_q(struct exchange *ex, struct str rest)
{
    struct url_pair *pairs;
    unsigned         count;
    struct buf       json;

    if (url_parse_query(&ex->arena, ex->request.query, 1000, &pairs, &count) < 0) {
        answer_text(ex, 400, STR("too many parameters"));
        return;
    }
    buf_init(&json, 1024 * 1024);
    buf_add_byte(&json, '{');
    for (unsigned i = 0; i < count; i++) {
        buf_add_str(&json, i ? STR(",") : STR(""));
        text_json(&json, pairs[i].name);
        buf_add_byte(&json, ':');
        text_json(&json, pairs[i].value);
    }
    buf_add_byte(&json, '}');
    answer(ex, 200, NULL, 0, "application/json", buf_str(&json));
    buf_fini(&json);
}

static void start_h(struct exchange *ex, struct str name)
{
    const struct request *request = &ex->request;
    struct buf            value;
    bool                  found = false;

    buf_init(&value, 64 * 1024);
    for (unsigned i = 0; i < request->field_count; i++) {
        if (!str_is(request->fields[i].name, name))
            continue;
        buf_add_str(&value, found ? STR(", ") : STR(""));
        buf_add_str(&value, request->fields[i].value);
        found = true;
    }
    answer_text(ex, found ? 200 : 404, buf_str(&value));
    buf_fini(&value);
}

static void start_p(struct exchange *ex, struct str rest)
{
    answer(ex, 200, NULL, 0, "application/octet-stream", url_decode(&ex->arena, rest));
}

static struct str parameter(struct exchange *ex, struct str name)
{
    struct url_pair *pairs;
    unsigned         count;

    if (url_parse_query(&ex->arena, ex->request.query, 1000, &pairs, &count) == 0)
        for (unsigned i = 0; i < count; i++)
            if (str_is(pairs[i].name, name))
                return pairs[i].value;
    return STR("");
}

static void start_ext_header(struct exchange *ex, struct str rest)
{
    struct field out = { STR("X-Out"), parameter(ex, STR("v")), FIELD_OTHER };

    answer(ex, 200, &out, 1, "text/plain", STR("ok"));
}

static void start_ext_redirect(struct exchange *ex, struct str rest)
{
    struct field location = { STR("Location"), parameter(ex, STR("to")), FIELD_OTHER };

    answer(ex, 302, &location, 1, "text/plain", STR(""));
}

static void start_ext_cookie(struct exchange *ex, struct str rest)
{
    struct field cookie = { STR("Set-Cookie"), STR_NONE, FIELD_OTHER };
    struct buf   value;

    buf_init(&value, 64 * 1024);
    buf_add_str(&value, STR("a="));
    buf_add_str(&value, parameter(ex, STR("v")));
    buf_add_str(&value, STR("; Path=/"));
    cookie.value = buf_str(&value);
    answer(ex, 200, &cookie, 1, "text/plain", STR("ok"));
    buf_fini(&value);
}

/* --- work that waits ------------------------------------------------------------------------------------ */

/* In the exchange's arena. */
struct work {
    struct exchange *ex;
    struct timer     timer;
    struct buf       body; /* /echo */
    uint64_t         bytes;
    unsigned         parts;
    bool             paused; /* /slowread: the timer runs */
    bool             has_trailer;
};

static void free_body(void *work)
{
    buf_fini(&((struct work *)work)->body);
}

static void no_timer(struct timer *timer)
{
}

static struct work *begin_work(struct exchange *ex, const struct exchange_work *calls,
                               timer_fn on_timer)
{
    struct work *work = arena_zalloc(&ex->arena, sizeof(*work));

    work->ex = ex;
    timer_init(&work->timer, on_timer ? on_timer : no_timer);
    buf_init(&work->body, BODY_BYTES_MAX);
    arena_defer(&ex->arena, free_body, work);
    ex->work      = calls;
    ex->work_data = work;
    return work;
}

static void on_gone(struct exchange *ex, enum gone_why why)
{
    struct work *work = ex->work_data;

    timer_stop(&work->timer, ex->loop);
    exchange_work_let_go(ex);
}

/* The body turned out bad: the wire knows which status. */
static bool is_broken(struct exchange *ex)
{
    if (ex->request_state != REQUEST_BROKEN)
        return false;
    answer_text(ex, ex->request_fault, status_reason(ex->request_fault));
    return true;
}

/* --- /echo ------------------------------------------------------------------------------------------------ */

static void take_echo(struct exchange *ex)
{
    struct work *work = ex->work_data;
    struct str   data = exchange_take_body(ex, SIZE_MAX);

    if (data.len)
        buf_add_str(&work->body, data);
}

static void end_echo(struct exchange *ex)
{
    struct work *work = ex->work_data;
    char         len[24];
    struct field fields[] = { { STR("X-Method"), ex->request.method, FIELD_OTHER },
                              { STR("X-Len"), STR_NONE, FIELD_OTHER } };

    take_echo(ex);
    if (is_broken(ex))
        return;
    fields[1].value = str_make(len, (size_t)snprintf(len, sizeof(len), "%zu", work->body.len));
    answer(ex, 200, fields, ARRAY_LEN(fields), "application/octet-stream", buf_str(&work->body));
}

static const struct exchange_work echo = { .on_body     = take_echo,
                                           .on_body_end = end_echo,
                                           .on_gone     = on_gone };

static void start_echo(struct exchange *ex, struct str rest)
{
    begin_work(ex, &echo, NULL);
    take_echo(ex);
    exchange_want(ex);
    if (ex->request_state != REQUEST_BODY)
        end_echo(ex);
}

/* --- /slowread ---------------------------------------------------------------------------------------------- */

static void read_slowly(struct exchange *ex)
{
    struct work *work = ex->work_data;
    struct str   data;
    char         text[24];

    if (work->paused || is_broken(ex))
        return;
    data = exchange_take_body(ex, 64 * 1024);
    work->bytes += data.len;
    if (data.len) {
        work->paused = true;
        timer_start(&work->timer, ex->loop, 5);
    } else if (ex->request_state == REQUEST_ENDED) {
        answer_text(ex, 200,
                    str_make(text, (size_t)snprintf(text, sizeof(text), "%llu",
                                                    (unsigned long long)work->bytes)));
    } else {
        exchange_want(ex);
    }
}

static void on_pause_over(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);

    work->paused = false;
    read_slowly(work->ex);
}

static const struct exchange_work slowread = { .on_body     = read_slowly,
                                               .on_body_end = read_slowly,
                                               .on_gone     = on_gone };

static void start_slowread(struct exchange *ex, struct str rest)
{
    begin_work(ex, &slowread, on_pause_over);
    read_slowly(ex);
}

/* --- /big ------------------------------------------------------------------------------------------------------ */

static void write_big(struct exchange *ex)
{
    static char  letters[64 * 1024];
    struct work *work = ex->work_data;

    memset(letters, 'a', sizeof(letters));
    while (work->bytes < BIG_BYTES) {
        uint64_t     left  = BIG_BYTES - work->bytes;
        struct iovec piece = { letters, left < sizeof(letters) ? (size_t)left : sizeof(letters) };
        ssize_t      n     = exchange_body(ex, &piece, 1);

        if (n < 0)
            return;
        work->bytes += (uint64_t)n;
    }
    exchange_end(ex, NULL, 0);
    exchange_work_let_go(ex);
}

static const struct exchange_work big = { .on_room = write_big, .on_gone = on_gone };

static void start_big(struct exchange *ex, struct str rest)
{
    struct answer head = { 200, NULL, 0, STR("text/plain") };

    begin_work(ex, &big, NULL);
    exchange_head(ex, &head, BIG_BYTES);
    write_big(ex);
}

static void start_zeros(struct exchange *ex, struct str rest)
{
    struct answer head = { 200, NULL, 0, STR("text/plain") };

    exchange_head(ex, &head, ZERO_BYTES);
    exchange_file(ex, open("/dev/zero", O_RDONLY | O_CLOEXEC), 0, ZERO_BYTES);
    exchange_work_let_go(ex);
}

/* --- /stream, /trailer, /cut, /hints --------------------------------------------------------------------------------- */

static void end_stream(struct work *work)
{
    struct field trailer = { STR("X-Parts"), STR("5"), FIELD_OTHER };

    exchange_end(work->ex, &trailer, work->has_trailer);
    exchange_work_let_go(work->ex);
}

static void on_part_due(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);
    char         text[16];
    struct iovec piece = { text, (size_t)snprintf(text, sizeof(text), "part %u\n", work->parts++) };

    exchange_body(work->ex, &piece, 1);
    if (work->parts == PARTS)
        end_stream(work);
    else
        timer_start(timer, work->ex->loop, 10);
}

static const struct exchange_work stream = { .on_gone = on_gone };

static struct work *begin_stream(struct exchange *ex, timer_fn on_timer)
{
    struct answer head = { 200, NULL, 0, STR("text/plain") };
    struct work  *work = begin_work(ex, &stream, on_timer);

    exchange_head(ex, &head, ANSWER_LENGTH_UNKNOWN);
    timer_start(&work->timer, ex->loop, 10);
    return work;
}

static void start_stream(struct exchange *ex, struct str rest)
{
    begin_stream(ex, on_part_due);
}

static void start_trailer(struct exchange *ex, struct str rest)
{
    begin_stream(ex, on_part_due)->has_trailer = true;
}

static void on_cut_due(struct timer *timer)
{
    struct work *work  = container_of(timer, struct work, timer);
    struct iovec piece = { "cut here", 8 };

    exchange_body(work->ex, &piece, 1);
    exchange_abort(work->ex, GONE_ERROR);
    exchange_work_let_go(work->ex);
}

static void start_cut(struct exchange *ex, struct str rest)
{
    begin_stream(ex, on_cut_due);
}

static void start_cut_now(struct exchange *ex, struct str rest)
{
    struct answer head  = { 200, NULL, 0, STR("text/plain") };
    struct iovec  piece = { "cut here", 8 };

    exchange_head(ex, &head, ANSWER_LENGTH_UNKNOWN);
    exchange_body(ex, &piece, 1);
    exchange_work_let_go(ex);
}

static void start_hints(struct exchange *ex, struct str rest)
{
    struct field  link  = { STR("Link"), STR("</a.css>; rel=preload"), FIELD_OTHER };
    struct answer hints = { 103, &link, 1, STR("") };

    exchange_interim(ex, &hints);
    answer_text(ex, 200, STR("ok"));
}

/* --- bad behaviour ------------------------------------------------------------------------------------------------------ */

static void start_silent(struct exchange *ex, struct str rest)
{
    begin_work(ex, &stream, NULL);
}

static unsigned stubborn_now, stubborn_max;
static bool     is_drained; /* the connections have gone, and perhaps not all work */

static void on_stubborn_over(struct timer *timer)
{
    struct exchange *ex   = container_of(timer, struct work, timer)->ex;
    struct loop     *loop = ex->loop;

    exchange_work_let_go(ex);
    if (--stubborn_now == 0 && is_drained)
        loop_break(loop);
}

static void on_stubborn_gone(struct exchange *ex, enum gone_why why)
{
    struct work *work = ex->work_data;

    timer_start(&work->timer, ex->loop, 50);
}

static const struct exchange_work stubborn = { .on_gone = on_stubborn_gone };

static void start_stubborn(struct exchange *ex, struct str rest)
{
    begin_work(ex, &stubborn, on_stubborn_over);
    if (++stubborn_now > stubborn_max)
        stubborn_max = stubborn_now;
}

static void start_stubborn_max(struct exchange *ex, struct str rest)
{
    char text[16];

    answer_text(ex, 200, str_make(text, (size_t)snprintf(text, sizeof(text), "%u", stubborn_max)));
}

static void start_forget(struct exchange *ex, struct str rest)
{
    exchange_work_let_go(ex);
}

static void start_unread(struct exchange *ex, struct str rest)
{
    answer_text(ex, 200, STR("not read"));
}

/* --- /tunnel ----------------------------------------------------------------------------------------------------------------- */

/* What does not fit stays unread, and the client is held up. */
static void echo_bytes(struct channel *channel)
{
    enum channel_reading reading;

    do {
        struct str   rest;
        struct iovec piece;
        ssize_t      n = 0;

        reading = channel_fill(channel);
        rest    = channel_rest(channel);
        piece   = (struct iovec){ (void *)rest.at, rest.len };
        if (rest.len)
            n = channel_write(channel, &piece, 1);
        if (n == CHANNEL_WAIT)
            return;
        channel_consume(channel, (size_t)n);
    } while (reading == CHANNEL_BYTES);
    if (reading == CHANNEL_END && !channel_rest(channel).len)
        channel_end(channel);
}

static void on_tunnel_gone(struct channel *channel, enum gone_why why)
{
    fprintf(stderr, "tunnel gone\n");
}

static const struct channel_user tunnel = { .on_bytes = echo_bytes,
                                            .on_room  = channel_wake,
                                            .on_gone  = on_tunnel_gone };

static void start_tunnel(struct exchange *ex, struct str rest)
{
    struct answer   open    = { .status = 200 };
    struct channel *channel = NULL;

    if (str_is(ex->request.upgrade, STR("echo")) || str_is(ex->request.upgrade, STR("bye")))
        channel = exchange_upgrade(ex, ex->request.upgrade, &open);
    if (!channel) {
        answer_text(ex, 426, STR("upgrade to \"echo\""));
        return;
    }
    if (str_is(ex->request.upgrade, STR("echo")))
        channel_take(channel, &tunnel, NULL);
    else
        channel_end(channel);
    exchange_work_let_go(ex);
}

/* --- /static ---------------------------------------------------------------------------------------------------------------- */

static struct files_folder *root;

static void start_static(struct exchange *ex, struct str rest)
{
    struct files_rules       rules   = { "index.html", false, files_codings(&ex->request) };
    struct file_answer_rules answers = { .etag = true, .varies = true };

    if (root)
        file_answer_serve(ex, root, url_decode(&ex->arena, rest), &rules, &answers);
    else
        answer_text(ex, 404, STR("no root"));
}

/* --- dispatch ------------------------------------------------------------------------------------------------------------ */

static const struct handler handlers[] = {
    { "/", "GET, HEAD", start_root },
    { "/echo", NULL, start_echo },
    { "/q", "GET, HEAD", start_q },
    { "/h/", "GET, HEAD", start_h },
    { "/p/", "GET, HEAD", start_p },
    { "/slowread", "POST", start_slowread },
    { "/big", "GET, HEAD", start_big },
    { "/zeros", "GET, HEAD", start_zeros },
    { "/stream", "GET, HEAD", start_stream },
    { "/trailer", "GET, HEAD", start_trailer },
    { "/hints", "GET, HEAD", start_hints },
    { "/cut", "GET", start_cut },
    { "/cut-now", "GET", start_cut_now },
    { "/silent", "GET", start_silent },
    { "/stubborn", "GET", start_stubborn },
    { "/stubborn-max", "GET", start_stubborn_max },
    { "/forget", "GET, HEAD", start_forget },
    { "/unread", "POST", start_unread },
    { "/tunnel", "GET", start_tunnel },
    { "/static/", NULL, start_static },
    { "/ext/header", "GET", start_ext_header },
    { "/ext/redirect", "GET", start_ext_redirect },
    { "/ext/cookie", "GET", start_ext_cookie },
};

static bool matches(const struct handler *handler, struct str path, struct str *rest)
{
    struct str pattern = str_of(handler->path);

    *rest = STR("");
    if (pattern.len == 1 || pattern.at[pattern.len - 1] != '/')
        return str_is(path, pattern);
    if (!str_starts_with(path, pattern))
        return false;
    *rest = str_from(path, pattern.len);
    return true;
}

static bool allows(const struct handler *handler, struct str method)
{
    struct str rest, name;

    if (!handler->methods)
        return true;
    rest = str_of(handler->methods);
    while (str_next(&rest, ',', &name))
        if (str_is(name, method))
            return true;
    return false;
}

static void on_request(struct exchange *ex, void *arg)
{
    struct str rest;

    ex->body_limit = BODY_BYTES_MAX;
    for (unsigned i = 0; i < ARRAY_LEN(handlers); i++) {
        const struct handler *handler = &handlers[i];

        if (!matches(handler, ex->request.path, &rest))
            continue;
        if (allows(handler, ex->request.method)) {
            handler->start(ex, rest);
        } else {
            struct field allow = { STR("Allow"), str_of(handler->methods), FIELD_OTHER };

            answer(ex, 405, &allow, 1, "text/plain", STR("not allowed"));
        }
        return;
    }
    answer_text(ex, 404, STR("not found"));
}

/* --- the process ------------------------------------------------------------------------------------------------------------ */

static void on_drained(void *arg)
{
    is_drained = true;
    if (!stubborn_now)
        loop_break(((struct wire_app *)arg)->loop);
}

static void on_refused(const struct http_refusal *refusal, void *arg)
{
    fprintf(stderr, "refused status=%u reason=\"%s\"\n", refusal->status, refusal->reason);
}

static void open_root(const char *path)
{
    struct err err;

    if (files_open(&root, path, &err) == 0)
        return;
    fprintf(stderr, "http1_app: %s\n", err.text);
    exit(1);
}

static void read_options(const struct wire_app *app, char **argv, struct http_limits *limits,
                         uint64_t *port, uint64_t *connections, uint64_t *streams)
{
    const struct wire_app_number numbers[] = {
        { "--port", port },
        { "--connections", connections },
        { "--head-ms", &limits->head_ms },
        { "--body-ms", &limits->body_ms },
        { "--write-ms", &limits->write_ms },
        { "--keep-alive-ms", &limits->keep_alive_ms },
        { "--half-close-ms", &limits->half_close_ms },
        { "--streams", streams },
    };

    for (; argv[0] && argv[1]; argv += 2) {
        if (strcmp(argv[0], "--root") == 0)
            open_root(argv[1]);
        else
            wire_app_take(app, numbers, ARRAY_LEN(numbers), argv);
    }
}

int main(int argc, char **argv)
{
    struct wire_app            app = { .name = "http1_app" };
    struct http_limits         limits;
    struct http_server_options options = { .limits     = &limits,
                                           .dispatch   = on_request,
                                           .on_refused = on_refused,
                                           .on_drained = on_drained };
    uint64_t                   port = 0, connections = 10000, streams = 128;

    http_limits_init(&limits);
    read_options(&app, argv + 1, &limits, &port, &connections, &streams);
    limits.connections = (uint32_t)connections;
    limits.streams     = (uint32_t)streams;
    wire_app_open(&app);
    wire_app_run(&app, options, port);

    wire_app_stop(&app);
    files_close(root);
    wire_app_close(&app);
    return 0;
}
