#include "http/message.h"

#include "base/compiler.h"
#include "support/check.h"

static const char *const names[FIELD_ID_COUNT] = {
    [FIELD_HOST]                = "host",
    [FIELD_CONNECTION]          = "connection",
    [FIELD_CONTENT_LENGTH]      = "content-length",
    [FIELD_TRANSFER_ENCODING]   = "transfer-encoding",
    [FIELD_EXPECT]              = "expect",
    [FIELD_UPGRADE]             = "upgrade",
    [FIELD_CONTENT_TYPE]        = "content-type",
    [FIELD_CONTENT_ENCODING]    = "content-encoding",
    [FIELD_ACCEPT]              = "accept",
    [FIELD_ACCEPT_ENCODING]     = "accept-encoding",
    [FIELD_COOKIE]              = "cookie",
    [FIELD_IF_NONE_MATCH]       = "if-none-match",
    [FIELD_IF_MODIFIED_SINCE]   = "if-modified-since",
    [FIELD_IF_MATCH]            = "if-match",
    [FIELD_IF_UNMODIFIED_SINCE] = "if-unmodified-since",
    [FIELD_IF_RANGE]            = "if-range",
    [FIELD_RANGE]               = "range",
    [FIELD_USER_AGENT]          = "user-agent",
    [FIELD_AUTHORIZATION]       = "authorization",
    [FIELD_ORIGIN]              = "origin",
};

TEST(every_id_has_its_name)
{
    for (unsigned id = FIELD_OTHER + 1; id < FIELD_ID_COUNT; id++) {
        CHECK(names[id]);
        CHECK_INT(field_id_of(str_of(names[id])), id);
    }
}

TEST(a_name_that_is_one_letter_off_is_another)
{
    for (unsigned id = FIELD_OTHER + 1; id < FIELD_ID_COUNT; id++) {
        char   name[32];
        size_t len = strlen(names[id]);

        memcpy(name, names[id], len);
        for (size_t i = 0; i < len; i++) {
            name[i] = '_';
            CHECK_INT(field_id_of(str_make(name, len)), FIELD_OTHER);
            name[i] = names[id][i];
        }
        CHECK_INT(field_id_of(str_make(name, len - 1)), FIELD_OTHER);
    }
    CHECK_INT(field_id_of(STR("")), FIELD_OTHER);
}

TEST(fields_are_found_by_id_and_by_name)
{
    struct field   fields[] = { { STR("x-a"), STR("1"), FIELD_OTHER },
                                { STR("cookie"), STR("a"), FIELD_COOKIE },
                                { STR("cookie"), STR("b"), FIELD_COOKIE },
                                { STR("host"), STR("h"), FIELD_HOST } };
    struct request request  = { .fields = fields, .field_count = ARRAY_LEN(fields) };

    request_index_fields(&request);
    CHECK(request_field(&request, FIELD_COOKIE) == &fields[1]);
    CHECK(request_field(&request, FIELD_HOST) == &fields[3]);
    CHECK(request_field(&request, FIELD_EXPECT) == NULL);
    CHECK_INT(request.repeated, 1u << FIELD_COOKIE);
    CHECK(request_field_by_name(&request, STR("x-a")) == &fields[0]);
    CHECK(request_field_by_name(&request, STR("cookie")) == &fields[1]);
    CHECK(request_field_by_name(&request, STR("x-b")) == NULL);
}

TEST(statuses_have_their_lines)
{
    CHECK(str_is(status_line(404), STR("HTTP/1.1 404 Not Found\r\n")));
    CHECK(str_is(status_reason(418), STR("I'm a Teapot")));
    CHECK(str_is(status_reason(299), STR("Unknown")));
    CHECK_INT(status_line(299).len, 0);
    CHECK_INT(status_line(0).len, 0);
    CHECK_INT(status_line(600).len, 0);
    CHECK_INT(status_line(99).len, 0);
}

int main(void)
{
    return check_run();
}
