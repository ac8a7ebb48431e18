#include "data/pg_array.h"

#include "support/check.h"

static char        shown[256];
static const char *MARKS[] = { "[", "]", "~", "", "", "!" };

/* What comes of TEXT: brackets, ~ for NULL, elements between bars, ! where it is none. */
static const char *show_separated(const char *text, char separator)
{
    struct pg_array     array;
    enum pg_array_event event;
    size_t              len = 0;

    pg_array_init(&array, str_of(text), separator);
    do {
        event = pg_array_next(&array);
        if (event == PG_ARRAY_ELEMENT)
            len += (size_t)snprintf(shown + len, sizeof(shown) - len, "|%.*s|",
                                    STR_ARG(array.element));
        else
            len += (size_t)snprintf(shown + len, sizeof(shown) - len, "%s", MARKS[event]);
    } while (event != PG_ARRAY_END && event != PG_ARRAY_BAD);
    pg_array_fini(&array);
    return shown;
}

static const char *show(const char *text)
{
    return show_separated(text, ',');
}

TEST(arrays_are_read_in_any_depth)
{
    CHECK_STR(show("{}"), "[]");
    CHECK_STR(show("{1}"), "[|1|]");
    CHECK_STR(show("{1,-2,3.5}"), "[|1||-2||3.5|]");
    CHECK_STR(show("{{1,2},{3,4}}"), "[[|1||2|][|3||4|]]");
    CHECK_STR(show("{{{a}}}"), "[[[|a|]]]");
    CHECK_STR(show("[2:3]={5,6}"), "[|5||6|]");
    CHECK_STR(show_separated("{(1,2);(3,4)}", ';'), "[|(1,2)||(3,4)|]");
}

TEST(null_is_no_text)
{
    CHECK_STR(show("{NULL,null,\"NULL\",nullx}"), "[~~|NULL||nullx|]");
}

TEST(what_is_in_quotes_is_as_it_stands)
{
    CHECK_STR(show("{\"a b\",\"\",\"{,}\",\"c\\\"d\\\\\"}"), "[|a b||||{,}||c\"d\\|]");
}

TEST(what_is_no_array_is_told)
{
    static const char *const BAD[] = { "",     "x",      "{",      "{1",
                                       "{1,}", "{,1}",   "{1}x",   "{\"a",
                                       "{a{",  "{1}{2}", "{a\"b}", "{{1}2}",
                                       "}",    "[1:2]",  "{\"a\\", "{{{{{{{1}}}}}}}" };

    for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
        CHECK(strchr(show(BAD[i]), '!') != NULL);
}

static const char *from_json(const char *json, bool of_json)
{
    struct buf out;

    buf_init(&out, 200);
    if (!pg_array_from_json(&out, str_of(json), of_json) || out.failed)
        snprintf(shown, sizeof(shown), "!");
    else
        snprintf(shown, sizeof(shown), "%.*s", STR_ARG(buf_str(&out)));
    buf_fini(&out);
    return shown;
}

TEST(arrays_are_made_of_json)
{
    CHECK_STR(from_json("[]", false), "{}");
    CHECK_STR(from_json("[1,2.5,true,null]", false), "{1,2.5,true,NULL}");
    CHECK_STR(from_json("[[1,2],[3,4]]", false), "{{1,2},{3,4}}");
    CHECK_STR(from_json("[\"a\",\"b\\\"c\",\"d\\\\e\",\"\\u00e4\",\"null\"]", false),
              "{\"a\",\"b\\\"c\",\"d\\\\e\",\"\xc3\xa4\",\"null\"}");
    CHECK_STR(from_json("[{\"a\":[1,\"}\"]}]", false), "{\"{\\\"a\\\":[1,\\\"}\\\"]}\"}");
    CHECK_STR(from_json("[[1,[2]],\"x\",null]", true), "{\"[1,[2]]\",\"\\\"x\\\"\",NULL}");
    CHECK_STR(from_json("{\"a\":1}", false), "!");
    CHECK_STR(from_json("7", false), "!");
}

int main(void)
{
    return check_run();
}
