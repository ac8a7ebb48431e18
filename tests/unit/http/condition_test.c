#include "http/condition.h"

#include "http/message.h"
#include "support/check.h"

static const struct condition_validators TAGGED = { STR_INIT("\"a\""), CONDITION_NO_TIME };
static const struct condition_validators DATED  = { { NULL, 0 }, 1700000000 };

#define SAME_TIME  "Tue, 14 Nov 2023 22:13:20 GMT"
#define AN_EARLIER "Tue, 14 Nov 2023 22:13:19 GMT"

static unsigned ask(const char *name, const char *value,
                    const struct condition_validators *validators)
{
    struct field   field   = { str_of(name), str_of(value), field_id_of(str_of(name)) };
    struct request request = { .fields = &field, .field_count = 1 };

    request_index_fields(&request);
    return condition_status(&request, validators);
}

TEST(a_listed_tag_is_not_sent_again)
{
    CHECK_INT(ask("if-none-match", "\"a\"", &TAGGED), 304);
    CHECK_INT(ask("if-none-match", "\"x\", W/\"a\"", &TAGGED), 304);
    CHECK_INT(ask("if-none-match", "*", &TAGGED), 304);
    CHECK_INT(ask("if-none-match", "\"b\"", &TAGGED), 0);
    CHECK_INT(ask("if-none-match", "a", &TAGGED), 0);
}

TEST(a_comma_inside_a_tag_does_not_part_it)
{
    struct condition_validators validators = { STR("\"a,b\""), CONDITION_NO_TIME };

    CHECK_INT(ask("if-none-match", "\"x\",\"a,b\"", &validators), 304);
    CHECK_INT(ask("if-none-match", "\"a\",\"b\"", &validators), 0);
}

TEST(if_match_compares_strongly)
{
    struct condition_validators weak = { STR("W/\"a\""), CONDITION_NO_TIME };

    CHECK_INT(ask("if-match", "\"a\"", &TAGGED), 0);
    CHECK_INT(ask("if-match", "W/\"a\"", &TAGGED), 412);
    CHECK_INT(ask("if-match", "\"a\"", &weak), 412);
    CHECK_INT(ask("if-match", "\"b\"", &TAGGED), 412);
    CHECK_INT(ask("if-match", "*", &TAGGED), 0);
}

TEST(dates_count_where_no_tag_is_asked_for)
{
    CHECK_INT(ask("if-modified-since", SAME_TIME, &DATED), 304);
    CHECK_INT(ask("if-modified-since", AN_EARLIER, &DATED), 0);
    CHECK_INT(ask("if-modified-since", "yesterday", &DATED), 0);
    CHECK_INT(ask("if-unmodified-since", SAME_TIME, &DATED), 0);
    CHECK_INT(ask("if-unmodified-since", AN_EARLIER, &DATED), 412);
}

TEST(a_tag_beats_a_date)
{
    struct field fields[] = {
        { STR("if-none-match"), STR("\"b\""), FIELD_IF_NONE_MATCH },
        { STR("if-modified-since"), STR(SAME_TIME), FIELD_IF_MODIFIED_SINCE },
    };
    struct request              request    = { .fields = fields, .field_count = 2 };
    struct condition_validators validators = { STR("\"a\""), 1700000000 };

    request_index_fields(&request);
    CHECK_INT(condition_status(&request, &validators), 0);
}

int main(void)
{
    return check_run();
}
