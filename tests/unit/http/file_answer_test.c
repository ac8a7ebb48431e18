#include "http/file_answer.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "http/h1_parse.h"
#include "support/check.h"

static const struct h1_limits LIMITS = { .line_bytes = 8192, .head_bytes = 32768, .fields = 100 };

static struct arena_pool        pool;
static struct arena             arena;
static struct file_answer       plan;
static struct files_file        file;
static struct file_answer_rules rules;

/* A file of ten bytes, changed at the time of RFC 9110's example, and the rules' defaults. */
static void begin(void)
{
    file = (struct files_file){
        .fd = -1, .size = 10, .inode = 0xabc, .mtime_s = 784111777, .name = STR("digits.bin")
    };
    rules = (struct file_answer_rules){ .etag = true };
}

#define ETAG "\"abc-a-2ebc98a100000000\""
#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"

/* The plan for a request with FIELDS (each with its CRLF). */
static void ask(const char *method, const char *fields)
{
    char                head[2000];
    size_t              len;
    struct h1_head_gate gate;
    struct h1_body      body;
    struct h1_fault     fault;
    struct request     *request;

    arena_reset(&arena);
    request = arena_alloc(&arena, sizeof(*request));
    len =
        (size_t)snprintf(head, sizeof(head), "%s / HTTP/1.1\r\nHost: a\r\n%s\r\n", method, fields);
    h1_gate_init(&gate);
    CHECK_INT(h1_gate_head(&gate, &LIMITS, head, len), H1_DONE);
    CHECK(h1_parse_head(&arena, str_make(head, len), gate.fields, request, &body, &fault));
    file_answer_plan(&arena, request, &file, &rules, &plan);
}

static struct str field(const char *name)
{
    for (unsigned i = 0; i < plan.field_count; i++)
        if (str_is(plan.fields[i].name, str_of(name)))
            return plan.fields[i].value;
    return STR_NONE;
}

#define CHECK_FIELD(name, want)                                                                    \
    do {                                                                                           \
        struct str value = field(name);                                                            \
        CHECK_MEM(value.at, value.len, want, sizeof(want) - 1);                                    \
    } while (0)

TEST(a_file_has_its_validators)
{
    begin();
    ask("GET", "");
    CHECK_INT(plan.status, 200);
    CHECK_INT(plan.length, 10);
    CHECK_FIELD("ETag", ETAG);
    CHECK_FIELD("Last-Modified", DATE);
    CHECK_FIELD("Cache-Control", "public, max-age=0");
    CHECK_FIELD("Accept-Ranges", "bytes");
    CHECK(!field("Vary").len);
    CHECK(str_is(plan.content_type, STR("application/octet-stream")));
}

TEST(rules_show_in_the_fields)
{
    begin();
    file.coding = CODINGS_BR;
    file.name   = STR("app.js");
    rules = (struct file_answer_rules){ .max_age_s = 3600, .immutable = true, .varies = true };
    ask("GET", "");
    CHECK_FIELD("Cache-Control", "public, max-age=3600, immutable");
    CHECK_FIELD("Content-Encoding", "br");
    CHECK_FIELD("Vary", "Accept-Encoding");
    CHECK(!field("ETag").len);
    CHECK(str_is(plan.content_type, STR("text/javascript; charset=utf-8")));
    rules.content_type = STR("text/plain");
    rules.is_private   = true;
    ask("GET", "");
    CHECK_FIELD("Cache-Control", "private, max-age=3600, immutable");
    CHECK(str_is(plan.content_type, STR("text/plain")));
}

TEST(a_tag_is_weak_while_the_clock_may_not_have_ticked)
{
    begin();
    file.mtime_s = clock_wall_ms() / 1000;
    ask("GET", "");
    CHECK(str_starts_with(field("ETag"), STR("W/\"abc-a-")));
    file.mtime_s -= 10;
    ask("GET", "");
    CHECK(str_starts_with(field("ETag"), STR("\"abc-a-")));
}

TEST(what_the_client_has_is_304)
{
    begin();
    ask("GET", "If-None-Match: " ETAG "\r\n");
    CHECK_INT(plan.status, 304);
    CHECK_INT(plan.length, 0);
    CHECK(!plan.content_type.len);
    CHECK_FIELD("ETag", ETAG);
    CHECK(!field("Accept-Ranges").len);
    ask("GET", "If-None-Match: W/" ETAG "\r\n");
    CHECK_INT(plan.status, 304);
    ask("HEAD", "If-Modified-Since: " DATE "\r\n");
    CHECK_INT(plan.status, 304);
    ask("GET", "If-None-Match: \"other\"\r\nIf-Modified-Since: " DATE "\r\n");
    CHECK_INT(plan.status, 200);
    ask("GET", "If-None-Match: " ETAG "\r\nRange: bytes=0-1\r\n");
    CHECK_INT(plan.status, 304);
}

TEST(what_the_client_must_have_is_412_otherwise)
{
    begin();
    ask("GET", "If-Match: W/" ETAG "\r\n");
    CHECK_INT(plan.status, 412);
    ask("GET", "If-Match: " ETAG "\r\n");
    CHECK_INT(plan.status, 200);
    ask("GET", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n");
    CHECK_INT(plan.status, 412);
}

TEST(any_file_fits_a_star)
{
    begin();
    rules.etag = false;
    ask("GET", "If-Match: *\r\n");
    CHECK_INT(plan.status, 200);
    ask("GET", "If-None-Match: *\r\n");
    CHECK_INT(plan.status, 304);
}

/* A cache that stored it would give everybody the answer to one client's conditions. */
TEST(a_refusal_is_nothing_to_store)
{
    begin();
    rules.max_age_s = 3600;
    file.coding     = CODINGS_GZIP;
    ask("GET", "If-Match: \"other\"\r\n");
    CHECK_INT(plan.status, 412);
    CHECK(!field("Cache-Control").len);
    CHECK(!field("Content-Encoding").len);
    ask("GET", "Range: bytes=10-\r\n");
    CHECK_INT(plan.status, 416);
    CHECK(!field("Cache-Control").len);
    CHECK(!field("Content-Encoding").len);
    CHECK(!plan.content_type.len);
    CHECK_FIELD("Content-Range", "bytes */10");
}

TEST(other_methods_get_all_of_the_file)
{
    begin();
    ask("POST", "If-None-Match: " ETAG "\r\nRange: bytes=0-1\r\n");
    CHECK_INT(plan.status, 200);
    CHECK_INT(plan.length, 10);
    ask("POST", "If-Match: \"other\"\r\n");
    CHECK_INT(plan.status, 200);
}

TEST(a_young_date_is_no_strong_validator)
{
    char fields[200], date[CLOCK_HTTP_DATE_LEN];

    begin();
    file.mtime_s = clock_wall_ms() / 1000;
    clock_http_date(date, file.mtime_s);
    snprintf(fields, sizeof(fields), "Range: bytes=0-1\r\nIf-Range: %.*s\r\n", (int)sizeof(date),
             date);
    ask("GET", fields);
    CHECK_INT(plan.status, 200);
}

TEST(one_range_is_a_part)
{
    begin();
    ask("GET", "Range: bytes=2-4\r\n");
    CHECK_INT(plan.status, 206);
    CHECK_INT(plan.offset, 2);
    CHECK_INT(plan.length, 3);
    CHECK_FIELD("Content-Range", "bytes 2-4/10");
    ask("HEAD", "Range: bytes=2-4\r\n");
    CHECK_INT(plan.status, 200);
    CHECK_INT(plan.length, 10);
    ask("GET", "Range: bytes=2-4\r\nRange: bytes=5-6\r\n");
    CHECK_INT(plan.status, 200);
}

TEST(a_range_behind_the_end_is_416)
{
    begin();
    ask("GET", "Range: bytes=10-\r\n");
    CHECK_INT(plan.status, 416);
    CHECK_INT(plan.length, 0);
    CHECK_FIELD("Content-Range", "bytes */10");
}

TEST(if_range_wants_a_strong_tag_or_the_very_date)
{
    begin();
    ask("GET", "Range: bytes=0-1\r\nIf-Range: " ETAG "\r\n");
    CHECK_INT(plan.status, 206);
    ask("GET", "Range: bytes=0-1\r\nIf-Range: W/" ETAG "\r\n");
    CHECK_INT(plan.status, 200);
    ask("GET", "Range: bytes=0-1\r\nIf-Range: \"other\"\r\n");
    CHECK_INT(plan.status, 200);
    ask("GET", "Range: bytes=0-1\r\nIf-Range: " DATE "\r\n");
    CHECK_INT(plan.status, 206);
    ask("GET", "Range: bytes=0-1\r\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    CHECK_INT(plan.status, 200);
}

TEST(several_ranges_are_a_multipart_if_they_are_small)
{
    begin();
    ask("GET", "Range: bytes=0-1,4-5\r\n");
    CHECK_INT(plan.status, 206);
    CHECK_INT(plan.part_count, 2);
    CHECK(str_starts_with(plan.content_type, STR("multipart/byteranges; boundary=")));
    CHECK(!field("Content-Range").len);
    file.size = 1024 * 1024;
    ask("GET", "Range: bytes=0-200000,300000-400000\r\n");
    CHECK_INT(plan.status, 200);
    CHECK_INT(plan.part_count, 0);
    CHECK_INT(plan.length, 1024 * 1024);
}

int main(void)
{
    int status;

    h1_parse_init();
    arena_pool_init(&pool, 4);
    arena_init(&arena, &pool);
    status = check_run();
    arena_reset(&arena);
    arena_pool_fini(&pool);
    return status;
}
