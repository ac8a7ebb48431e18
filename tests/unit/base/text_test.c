#include "base/text.h"

#include "support/check.h"

static struct buf out;

static void clear(void)
{
    buf_fini(&out);
    buf_init(&out, 4096);
}

static void check_json(struct str s, const char *want)
{
    clear();
    text_json(&out, s);
    CHECK_MEM(out.at, out.len, want, strlen(want));
}

static void check_terminal(struct str s, unsigned indent, const char *want)
{
    clear();
    text_terminal(&out, s, indent);
    CHECK_MEM(out.at, out.len, want, strlen(want));
}

TEST(json_escapes_what_a_string_may_not_hold)
{
    check_json(STR_NONE, "\"\"");
    check_json(STR("plain /path?a=b"), "\"plain /path?a=b\"");
    check_json(STR("a\"b\\c"), "\"a\\\"b\\\\c\"");
    check_json(STR("\n\r\t\0\x1b\x1f"), "\"\\n\\r\\t\\u0000\\u001b\\u001f\"");
    check_json(STR("\x7f"), "\"\\u007f\"");
}

TEST(json_keeps_utf8_and_replaces_what_is_none)
{
    check_json(STR("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82"),
               "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82\"");
    check_json(STR("\xc2\x9b\xe2\x80\xae"), "\"\\u009b\\u202e\"");
    check_json(STR("a\xff"), "\"a\xef\xbf\xbd\"");
    check_json(STR("\xc3"), "\"\xef\xbf\xbd\"");                                 /* cut off */
    check_json(STR("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    check_json(STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
}

TEST(utf8_sequences_are_those_of_rfc_3629)
{
    CHECK_INT(text_utf8_len(STR("a")), 1);
    CHECK_INT(text_utf8_len(STR("\xdf\xbf")), 2);
    CHECK_INT(text_utf8_len(STR("\xe0\xa0\x80")), 3);
    CHECK_INT(text_utf8_len(STR("\xf4\x8f\xbf\xbf")), 4);
    CHECK_INT(text_utf8_len(STR("\xf4\x90\x80\x80")), 0);
    CHECK_INT(text_utf8_len(STR("\xe0\x9f\xbf")), 0);
    CHECK_INT(text_utf8_len(STR("\xf0\x8f\xbf\xbf")), 0);
    CHECK_INT(text_utf8_len(STR("\xe2\x82")), 0);
    CHECK_INT(text_utf8_len(STR("\xe2\x82\x2f")), 0);
    CHECK_INT(text_utf8_len(STR("\x80")), 0);
    CHECK_INT(text_utf8_len(STR_NONE), 0);
}

TEST(a_terminal_is_sent_no_control_sequences)
{
    check_terminal(STR("ok \xc3\xa9"), 0, "ok \xc3\xa9");
    check_terminal(STR("\x1b[2J\x07\x7f\r"), 0, "\\x1b[2J\\x07\\x7f\\x0d");
    check_terminal(STR("\xc2\x9b"
                       "31m"),
                   0, "\\u009b31m"); /* CSI in one character */
    check_terminal(STR("\xe2\x80\xae"
                       "txt"),
                   0, "\\u202etxt");
    check_terminal(STR("\xff\xfe"), 0, "\\xff\\xfe");
}

TEST(a_strangers_line_end_starts_no_line_of_ours)
{
    check_terminal(STR("a\n12:00 INFO b"), 4, "a\n    12:00 INFO b");
    check_terminal(STR("a\nb\tc"), 0, "a\\nb\\tc");
}

int main(void)
{
    int status = check_run();

    buf_fini(&out);
    return status;
}
