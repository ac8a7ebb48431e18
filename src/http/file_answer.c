#include "http/file_answer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "http/codings.h"
#include "http/condition.h"
#include "http/exchange.h"
#include "http/mime.h"

/* --- text ------------------------------------------------------------------------------------------ */

enum { TEXT_BYTES_MAX = 256 };

static struct str format(struct arena *arena, const char *pattern, ...) PRINTF_LIKE(2, 3);

static struct str format(struct arena *arena, const char *pattern, ...)
{
    char    text[TEXT_BYTES_MAX];
    va_list args;
    int     len;

    va_start(args, pattern);
    len = vsnprintf(text, sizeof(text), pattern, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof(text));
    return arena_copy(arena, str_make(text, (size_t)len));
}

static void add_field(struct file_answer *plan, struct str name, struct str value)
{
    plan->fields[plan->field_count++] = (struct field){ name, value, FIELD_OTHER };
}

/* --- validators -------------------------------------------------------------------------------------- */

enum { FRESH_MS = 2000 };

/* A file may change twice within one tick of its clock and keep its size, so a tag made of both is
 * not strong before the tick is over (RFC 9110, 8.8.1). */
static bool is_fresh(const struct files_file *file)
{
    return clock_wall_ms() < file->mtime_s * 1000 + file->mtime_ns / 1000000 + FRESH_MS;
}

static struct str make_etag(struct arena *arena, const struct files_file *file)
{
    return format(arena, "%s\"%llx-%llx-%llx%08x\"", is_fresh(file) ? "W/" : "",
                  (unsigned long long)file->inode, (unsigned long long)file->size,
                  (unsigned long long)file->mtime_s, file->mtime_ns);
}

static struct str make_date(struct arena *arena, int64_t seconds)
{
    char text[CLOCK_HTTP_DATE_LEN];

    clock_http_date(text, seconds);
    return arena_copy(arena, str_make(text, sizeof(text)));
}

static void add_cache_control(struct arena *arena, struct file_answer *plan,
                              const struct file_answer_rules *rules)
{
    add_field(plan, STR("Cache-Control"),
              format(arena, "%s, max-age=%llu%s", rules->is_private ? "private" : "public",
                     (unsigned long long)rules->max_age_s, rules->immutable ? ", immutable" : ""));
}

void file_answer_describe(struct arena *arena, const struct files_file *file,
                          const struct file_answer_rules *rules, struct file_answer *out)
{
    out->status       = 0;
    out->content_type = rules->content_type.len ? rules->content_type : mime_of_path(file->name);
    out->field_count  = 0;
    out->length       = file->size;
    out->offset       = 0;
    out->part_count   = 0;
    if (rules->etag)
        add_field(out, STR("ETag"), make_etag(arena, file));
    add_field(out, STR("Last-Modified"), make_date(arena, file->mtime_s));
    add_cache_control(arena, out, rules);
    if (rules->varies)
        add_field(out, STR("Vary"), STR("Accept-Encoding"));
    add_field(out, STR("Accept-Ranges"), STR("bytes"));
    if (file->coding != CODINGS_IDENTITY)
        add_field(out, STR("Content-Encoding"), codings_name(file->coding));
}

/* --- ranges -------------------------------------------------------------------------------------------- */

/* RFC 9110, 13.1.5: a tag that is strong and the same, or the very date, unless the file is so young
 * that another may bear the same (8.8.2.2). */
static bool if_range_holds(const struct request *request, const struct files_file *file,
                           const struct condition_validators *now)
{
    const struct field *asked = request_field(request, FIELD_IF_RANGE);
    int64_t             date;

    if (!asked)
        return true;
    if (str_find(asked->value, '"') < asked->value.len)
        return condition_has_tag(asked->value, now->etag, false);
    return clock_parse_http_date(asked->value, &date) && date == now->last_modified &&
           !is_fresh(file);
}

static uint64_t bytes_of(const struct range *range)
{
    return range->last - range->first + 1;
}

static void plan_one(struct arena *arena, struct file_answer *plan, const struct range *range,
                     uint64_t size)
{
    plan->status = 206;
    plan->offset = range->first;
    plan->length = bytes_of(range);
    add_field(plan, STR("Content-Range"),
              format(arena, "bytes %llu-%llu/%llu", (unsigned long long)range->first,
                     (unsigned long long)range->last, (unsigned long long)size));
}

static size_t part_head(char *to, size_t room, const struct file_answer *plan,
                        const struct range *range, uint64_t size)
{
    int len = snprintf(
        to, room, "--%.*s\r\nContent-Type: %.*s\r\nContent-Range: bytes %llu-%llu/%llu\r\n\r\n",
        STR_ARG(plan->boundary), STR_ARG(plan->part_type), (unsigned long long)range->first,
        (unsigned long long)range->last, (unsigned long long)size);

    return (size_t)len;
}

static uint64_t multipart_bytes(const struct file_answer *plan, uint64_t size)
{
    uint64_t bytes = plan->boundary.len + sizeof("----\r\n") - 1;

    for (unsigned i = 0; i < plan->part_count; i++)
        bytes += part_head(NULL, 0, plan, &plan->parts[i], size) + bytes_of(&plan->parts[i]) + 2;
    return bytes;
}

static void plan_parts(struct arena *arena, struct file_answer *plan, unsigned count, uint64_t size)
{
    plan->status     = 206;
    plan->part_count = count;
    plan->part_type  = plan->content_type;
    plan->boundary   = format(arena, "%016llx", (unsigned long long)rand_u64());
    plan->content_type =
        format(arena, "multipart/byteranges; boundary=%.*s", STR_ARG(plan->boundary));
    plan->length = multipart_bytes(plan, size);
}

static uint64_t total_bytes(const struct range *ranges, unsigned count)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < count; i++)
        bytes += bytes_of(&ranges[i]);
    return bytes;
}

static void plan_ranges(struct arena *arena, const struct request *request,
                        struct file_answer *plan, uint64_t size)
{
    const struct field *asked = request_field(request, FIELD_RANGE);
    unsigned            count = 0;

    if (!asked || request->repeated & UINT32_C(1) << FIELD_RANGE)
        return;
    switch (range_parse(asked->value, size, plan->parts, &count)) {
    case RANGE_IGNORE: return;
    case RANGE_PARTIAL: break;
    case RANGE_UNSATISFIABLE:
        plan->status = 416;
        plan->length = 0;
        add_field(plan, STR("Content-Range"),
                  format(arena, "bytes */%llu", (unsigned long long)size));
        return;
    }
    if (count == 1)
        plan_one(arena, plan, &plan->parts[0], size);
    else if (total_bytes(plan->parts, count) <= FILE_ANSWER_MULTI_BYTES_MAX)
        plan_parts(arena, plan, count, size);
}

/* --- the plan ------------------------------------------------------------------------------------------- */

/* A 304 describes nothing but what validates and what says how long (RFC 9110, 15.4.5). The other two are
 * about this request and no representation: a cache that kept one would give it to everybody. */
bool file_answer_drops(unsigned status, struct str name)
{
    bool is_refusal = status == 412 || status == 416;

    if (str_is_nocase(name, STR("Content-Encoding")))
        return status == 304 || is_refusal;
    if (str_is_nocase(name, STR("Accept-Ranges")))
        return status == 304 || status == 412;
    return is_refusal &&
           (str_is_nocase(name, STR("Cache-Control")) || str_is_nocase(name, STR("Expires")));
}

/* In the order of RFC 9110, 13.2.2: conditions, then Range, and that for GET alone (14.2). */
void file_answer_decide(struct arena *arena, const struct request *request,
                        const struct files_file           *file,
                        const struct condition_validators *validators, struct file_answer *plan)
{
    bool     is_get = str_is(request->method, STR("GET"));
    unsigned status =
        is_get || str_is(request->method, STR("HEAD")) ? condition_status(request, validators) : 0;

    plan->status = status ? status : 200;
    if (!status && is_get && if_range_holds(request, file, validators))
        plan_ranges(arena, request, plan, file->size);
    if (plan->status != 200 && plan->status != 206) {
        plan->content_type = STR("");
        plan->length       = 0;
    }
}

static struct str find_field(const struct file_answer *plan, struct str name)
{
    for (unsigned i = 0; i < plan->field_count; i++)
        if (str_is(plan->fields[i].name, name))
            return plan->fields[i].value;
    return STR_NONE;
}

static void drop_fields(struct file_answer *plan)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < plan->field_count; i++)
        if (!file_answer_drops(plan->status, plan->fields[i].name))
            plan->fields[kept++] = plan->fields[i];
    plan->field_count = kept;
}

void file_answer_plan(struct arena *arena, const struct request *request,
                      const struct files_file *file, const struct file_answer_rules *rules,
                      struct file_answer *out)
{
    struct condition_validators validators = { STR_NONE, file->mtime_s };

    file_answer_describe(arena, file, rules, out);
    validators.etag = find_field(out, STR("ETag"));
    file_answer_decide(arena, request, file, &validators, out);
    drop_fields(out);
}

/* --- sending ----------------------------------------------------------------------------------------------- */

static bool read_part(struct buf *out, int fd, const struct range *range)
{
    uint64_t at = range->first, left = bytes_of(range);

    while (left) {
        char   *to = buf_reserve(out, (size_t)left);
        ssize_t n  = to ? pread(fd, to, (size_t)left, (off_t)at) : 0;

        if (n <= 0)
            return false;
        out->len += (size_t)n;
        at += (uint64_t)n;
        left -= (uint64_t)n;
    }
    return true;
}

static bool read_parts(struct buf *out, const struct file_answer *plan,
                       const struct files_file *file)
{
    char head[2 * TEXT_BYTES_MAX];

    for (unsigned i = 0; i < plan->part_count; i++) {
        size_t len = part_head(head, sizeof(head), plan, &plan->parts[i], file->size);

        if (len >= sizeof(head))
            return false;
        buf_add(out, head, len);
        if (!read_part(out, file->fd, &plan->parts[i]))
            return false;
        buf_add_str(out, STR("\r\n"));
    }
    buf_printf(out, "--%.*s--\r\n", STR_ARG(plan->boundary));
    return !out->failed && out->len == plan->length;
}

static int send_parts(struct exchange *ex, const struct answer *head,
                      const struct file_answer *plan, const struct files_file *file)
{
    struct buf body;
    int        rc;

    buf_init(&body, plan->length + 1);
    if (read_parts(&body, plan, file)) {
        rc = exchange_answer(ex, head, buf_str(&body));
    } else { /* the file has become shorter: its length is told already, so the client can tell */
        rc = exchange_head(ex, head, plan->length);
        exchange_abort(ex, GONE_ERROR);
    }
    buf_fini(&body);
    close(file->fd);
    return rc;
}

int file_answer_send(struct exchange *ex, const struct answer *head, const struct file_answer *plan,
                     const struct files_file *file)
{
    int rc;

    if (plan->part_count)
        return send_parts(ex, head, plan, file);
    if (plan->status != 200 && plan->status != 206) {
        close(file->fd);
        return exchange_answer(ex, head, STR(""));
    }
    rc = exchange_head(ex, head, plan->length);
    if (rc < 0) {
        close(file->fd);
        return rc;
    }
    return exchange_file(ex, file->fd, (off_t)plan->offset, plan->length);
}

/* --- all in one ---------------------------------------------------------------------------------------------- */

static void answer_status(struct exchange *ex, unsigned status, struct field *field)
{
    struct answer answer = { status, field, field ? 1 : 0, STR("text/plain; charset=utf-8") };

    exchange_answer(ex, &answer, status_reason(status));
}

/* The path as it was sent, with its slash and its query. Two slashes at its beginning would be
 * another host; files_find() knows no folder by such a path. */
static void redirect(struct exchange *ex)
{
    const struct request *request = &ex->request;
    struct field          field   = { STR("Location"), STR_NONE, FIELD_OTHER };
    struct buf            target;

    buf_init(&target, request->target.len + 2);
    buf_add_str(&target, request->path);
    buf_add_byte(&target, '/');
    if (request->query.len) {
        buf_add_byte(&target, '?');
        buf_add_str(&target, request->query);
    }
    field.value = buf_str(&target);
    answer_status(ex, 301, &field);
    buf_fini(&target);
}

static void answer_found(struct exchange *ex, const struct files_file *file,
                         const struct file_answer_rules *rules)
{
    struct file_answer *plan = arena_alloc(&ex->arena, sizeof(*plan));
    struct answer       head;

    file_answer_plan(&ex->arena, &ex->request, file, rules, plan);
    head = (struct answer){ plan->status, plan->fields, plan->field_count, plan->content_type };
    file_answer_send(ex, &head, plan, file);
}

void file_answer_serve(struct exchange *ex, const struct files_folder *folder, struct str path,
                       const struct files_rules *rules, const struct file_answer_rules *answers)
{
    struct field      allow = { STR("Allow"), STR("GET, HEAD"), FIELD_OTHER };
    struct files_file file;

    if (!str_is(ex->request.method, STR("GET")) && !str_is(ex->request.method, STR("HEAD"))) {
        answer_status(ex, 405, &allow);
    } else {
        switch (files_find(folder, path, rules, &file)) {
        case FILES_FOUND: answer_found(ex, &file, answers); break;
        case FILES_MISSING: answer_status(ex, 404, NULL); break;
        case FILES_BAD_PATH: answer_status(ex, 400, NULL); break;
        case FILES_IS_FOLDER: redirect(ex); break;
        case FILES_EXHAUSTED: answer_status(ex, 503, NULL); break;
        }
    }
    exchange_work_let_go(ex);
}
