#include "http/chars.h"

#include "support/check.h"

static bool is_forbidden(unsigned char byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

/* Every byte at every place of a word of eight and its neighbours, among bytes that lie close. */
TEST(controls_are_found_wherever_they_stand)
{
    static const char around[] = { ' ', '\x80', '\xff', '~', '\t' };

    for (unsigned a = 0; a < sizeof(around); a++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            for (size_t at = 0; at < 20; at++) {
                char        text[20];
                const char *found;

                memset(text, around[a], sizeof(text));
                text[at] = (char)byte;
                found    = chars_find_control(text, text + sizeof(text));
                CHECK_INT(found - text, is_forbidden((unsigned char)byte) ? at : sizeof(text));
            }
        }
    }
}

TEST(the_first_of_several_is_found)
{
    for (size_t first = 0; first < 16; first++) {
        char text[16];

        memset(text, 'a', sizeof(text));
        memset(text + first, '\x1f', sizeof(text) - first);
        CHECK_INT(chars_find_control(text, text + sizeof(text)) - text, first);
        memset(text + first, '\x7f', sizeof(text) - first);
        CHECK_INT(chars_find_control(text, text + sizeof(text)) - text, first);
    }
}

TEST(tokens_are_those_of_the_rfc)
{
    static const char tchar[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    for (unsigned byte = 0; byte < 256; byte++) {
        char one = (char)byte;

        CHECK_INT(chars_are_token(str_make(&one, 1)), byte && strchr(tchar, one) != NULL);
    }
    CHECK(!chars_are_token(STR("")));
    CHECK(chars_are_field_value(STR("")));
}

TEST(targets_are_visible_ascii_but_for_four)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char one     = (char)byte;
        bool allowed = byte > 0x20 && byte < 0x7f && !strchr("\"#<>", one);

        CHECK_INT(chars_skip(&one, &one + 1, CHARS_TARGET) == &one + 1, allowed);
    }
}

int main(void)
{
    return check_run();
}
