#include "base/err.h"

#include <errno.h>

#include "support/check.h"

TEST(set_returns_its_code_and_formats_the_text)
{
    struct err err;

    CHECK_INT(err_set(&err, ERR_BUSY, "queue %s holds %d", "file", 64), ERR_BUSY);
    CHECK_INT(err.code, ERR_BUSY);
    CHECK_STR(err.text, "queue file holds 64");
}

TEST(nobody_has_to_ask_for_the_text)
{
    errno = ENOENT;
    CHECK_INT(err_set(NULL, ERR_INVALID, "x"), ERR_INVALID);
    CHECK_INT(err_set_errno(NULL, "x"), ERR_NOT_FOUND);
}

TEST(errno_chooses_the_code_and_ends_the_text)
{
    static const struct {
        int number, code;
    } cases[] = { { ENOENT, ERR_NOT_FOUND }, { EEXIST, ERR_EXISTS }, { EADDRINUSE, ERR_IN_USE },
                  { ENOMEM, ERR_MEMORY },    { EIO, ERR_SYSTEM },    { ETIMEDOUT, ERR_TIMEOUT } };
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char want[128];

        errno = cases[i].number;
        CHECK_INT(err_set_errno(&err, "open %s", "a.lua"), cases[i].code);
        snprintf(want, sizeof(want), "open a.lua: %s", strerror(cases[i].number));
        CHECK_STR(err.text, want);
    }
}

TEST(a_long_text_is_cut_at_the_bound)
{
    struct err err;
    char       large[2000];

    memset(large, 'x', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    err_set(&err, ERR_INVALID, "%s", large);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
    errno = EIO;
    err_set_errno(&err, "%s", large);
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
}

TEST(every_code_has_a_name_of_its_own)
{
    for (int code = ERR_NONE; code >= ERR_LAST; code--) {
        CHECK(strcmp(err_name(code), "unknown") != 0);
        for (int other = code - 1; other >= ERR_LAST; other--)
            CHECK(strcmp(err_name(code), err_name(other)) != 0);
    }
    CHECK_STR(err_name(ERR_LAST - 1), "unknown");
    CHECK_STR(err_name(1), "unknown");
}

int main(void)
{
    return check_run();
}
