#include "base/password.h"

#include "base/compiler.h"
#include "support/check.h"

/* Of the argon2 reference implementation's own tests (RFC 9106, version 19). */
TEST(hashes_that_others_have_made_are_verified)
{
    struct str large = STR("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$"
                           "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc");
    struct str lanes = STR("$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$"
                           "bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc");

    CHECK_INT(password_verify(STR("password"), large), PASSWORD_RIGHT);
    CHECK_INT(password_verify(STR("Password"), large), PASSWORD_WRONG);
    CHECK_INT(password_verify(STR("password"), lanes), PASSWORD_RIGHT);
}

TEST(a_hash_names_its_parameters_and_is_verified)
{
    static const char BEGIN[] = "$argon2id$v=19$m=19456,t=2,p=1$";
    char              text[PASSWORD_TEXT_MAX], other[PASSWORD_TEXT_MAX];

    CHECK_INT(password_hash(STR("open sesame"), text), 0);
    CHECK_MEM(text, sizeof(BEGIN) - 1, BEGIN, sizeof(BEGIN) - 1);
    CHECK_INT(password_verify(STR("open sesame"), str_of(text)), PASSWORD_RIGHT);
    CHECK_INT(password_verify(STR("open sesame "), str_of(text)), PASSWORD_WRONG);
    CHECK_INT(password_verify(STR_NONE, str_of(text)), PASSWORD_WRONG);
    CHECK_INT(password_hash(STR("open sesame"), other), 0);
    CHECK(strcmp(text, other) != 0);
}

TEST(a_password_may_be_empty_and_hold_any_byte)
{
    char text[PASSWORD_TEXT_MAX];

    CHECK_INT(password_hash(STR_NONE, text), 0);
    CHECK_INT(password_verify(STR_NONE, str_of(text)), PASSWORD_RIGHT);
    CHECK_INT(password_hash(STR("a\0b"), text), 0);
    CHECK_INT(password_verify(STR("a\0c"), str_of(text)), PASSWORD_WRONG);
}

TEST(what_is_no_hash_or_asks_for_too_much_is_not_computed)
{
    static const struct str TEXTS[] = {
        STR_INIT(""),
        STR_INIT("plain"),
        STR_INIT("$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW"),
        STR_INIT(
            "$argon2i$v=19$m=256,t=2,p=2$c29tZXNhbHQ$T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E"),
        STR_INIT(
            "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"),
        STR_INIT(
            "$argon2id$v=19$m=256,t=1000000,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"),
        STR_INIT(
            "$argon2id$v=19$m=256000,t=2,p=9999$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"),
        STR_INIT("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ"),
        STR_INIT("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$"),
        STR_INIT("$argon2id$v=19$m=99999999999,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMa"),
        STR_INIT("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFh\0dXPJO1aFaMa"),
    };

    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++)
        CHECK_INT(password_verify(STR("password"), TEXTS[i]), PASSWORD_NO_HASH);
}

int main(void)
{
    return check_run();
}
