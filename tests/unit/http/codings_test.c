#include "http/codings.h"

#include "http/message.h"
#include "support/check.h"

static const enum codings_id OFFERS[] = { CODINGS_ZSTD, CODINGS_BR, CODINGS_GZIP };

static struct codings_choice choose(const char *first, const char *second)
{
    struct field fields[2] = {
        { .name = STR("accept-encoding"), .value = str_of(first), .id = FIELD_ACCEPT_ENCODING },
        { .name  = STR("accept-encoding"),
          .value = str_of(second ? second : ""),
          .id    = FIELD_ACCEPT_ENCODING }
    };
    struct request request = { .fields = fields, .field_count = second ? 2 : 1 };

    request_index_fields(&request);
    return codings_choose(&request, OFFERS, 3);
}

TEST(the_highest_weight_is_chosen_and_then_the_first_offer)
{
    static const struct {
        const char     *accept;
        enum codings_id id;
        bool            forced;
    } CASES[] = {
        { "gzip, br, zstd", CODINGS_ZSTD, false },
        { "gzip;q=1.0, br;q=0.999", CODINGS_GZIP, false },
        { "X-GZIP ;\tQ=0.1", CODINGS_GZIP, false },
        { "*", CODINGS_ZSTD, false },
        { "*;q=0.5, br;q=0.6", CODINGS_BR, false },
        { "zstd;q=0, *", CODINGS_BR, false },
        { "gzip;q=0.5, identity;q=0.6", CODINGS_IDENTITY, false },
        { "gzip, identity;q=0", CODINGS_GZIP, true },
        { "gzip, *;q=0", CODINGS_GZIP, true },
        { "*;q=0", CODINGS_IDENTITY, true },
        { "identity, gzip;q=0", CODINGS_IDENTITY, false },
        { "", CODINGS_IDENTITY, false },
        { ",, ;q=1, gzip;q=, deflate", CODINGS_GZIP, false },
        { "gzip;q=0.0001, br;q=2", CODINGS_BR, false },
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct codings_choice choice = choose(CASES[i].accept, NULL);

        if (choice.id != CASES[i].id)
            fprintf(stderr, "%s\n", CASES[i].accept);
        CHECK_INT(choice.id, CASES[i].id);
        CHECK_INT(choice.forced, CASES[i].forced);
    }
}

TEST(several_fields_are_one_list)
{
    CHECK_INT(choose("gzip;q=0.5", "br").id, CODINGS_BR);
}

TEST(without_the_field_nothing_is_coded)
{
    struct request request = { 0 };

    request_index_fields(&request);
    CHECK_INT(codings_choose(&request, OFFERS, 3).id, CODINGS_IDENTITY);
}

TEST(texts_become_smaller_and_events_are_left)
{
    CHECK(codings_help(STR("text/html; charset=utf-8")));
    CHECK(codings_help(STR("Application/JSON")));
    CHECK(codings_help(STR("application/problem+json")));
    CHECK(codings_help(STR("image/svg+xml")));
    CHECK(!codings_help(STR("text/event-stream; charset=utf-8")));
    CHECK(!codings_help(STR("image/png")));
    CHECK(!codings_help(STR("application/octet-stream")));
    CHECK(!codings_help(STR("")));
}

TEST(names_and_codings_are_found_both_ways)
{
    enum codings_id id;

    CHECK(codings_named(STR("BR"), &id) && id == CODINGS_BR);
    CHECK(codings_named(STR("identity"), &id) && id == CODINGS_IDENTITY);
    CHECK(!codings_named(STR("gzip, br"), &id));
    CHECK(!codings_named(STR(""), &id));
    CHECK(!codings_reader(CODINGS_IDENTITY) && !codings_writer(CODINGS_DEFLATE));
}

int main(void)
{
    return check_run();
}
