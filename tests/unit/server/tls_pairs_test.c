#include "server/tls_pairs.h"

#include <string.h>

#include "base/err.h"
#include "support/check.h"

static struct tls_pairs pairs;
static struct err       err;

static int read_text(const char *text)
{
    return tls_pairs_read(&pairs, str_of(text), &err);
}

TEST(pairs_become_a_list_of_certificates_and_one_of_their_keys)
{
    CHECK_INT(read_text("cert=a.pem key=a.key,key=b.key cert=b.pem,c.pem c.key"), 0);
    CHECK_STR(pairs.certs, "a.pem,b.pem,c.pem");
    CHECK_STR(pairs.keys, "a.key,b.key,c.key");
}

TEST(a_key_may_stand_in_the_certificates_file)
{
    CHECK_INT(read_text("cert=both.pem,cert=b.pem key=b.key"), 0);
    CHECK_STR(pairs.certs, "both.pem,b.pem");
    CHECK_STR(pairs.keys, "both.pem,b.key");
}

TEST(nothing_and_false_are_no_certificates)
{
    CHECK_INT(read_text(""), 0);
    CHECK_STR(pairs.certs, "");
    CHECK_INT(read_text("false"), 0);
    CHECK_STR(pairs.certs, "");
    CHECK_STR(pairs.keys, "");
}

TEST(what_is_no_list_of_pairs_is_told_how_one_looks)
{
    static const char *const BAD[] = { "a.pem", "a.pem,a.key",      "true",     "key=a.key",
                                       "a b c", "cert=a.pem x=b c", "ca=a.pem", "cert= key=b" };

    for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
        CHECK(read_text(BAD[i]) == ERR_INVALID);
        CHECK(strstr(err.text, "tls = { { cert = \"cert.pem\", key = \"key.pem\" } }") != NULL);
    }
}

TEST(what_is_neither_certificate_nor_key_is_named)
{
    CHECK(read_text("cert=a.pem key=b chain=c.pem") == ERR_INVALID);
    CHECK(strstr(err.text, "tls has no \"chain\"") != NULL);
    CHECK(read_text("cert=a.pem key=b ca=c.pem") == ERR_INVALID);
    CHECK(strstr(err.text, "tls has no \"ca\"") != NULL);
    CHECK(strstr(err.text, "client_ca") != NULL);
}

int main(void)
{
    return check_run();
}
