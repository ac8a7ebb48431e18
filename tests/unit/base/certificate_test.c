#include "base/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "support/check.h"

static struct certificate ca, server;
static struct err         err;

static const char *const NAMES[] = { "localhost", "*.shop.test", "127.0.0.1", "::1" };

static int make_both(void)
{
    struct certificate_spec of_ca     = { .subject      = "test authority",
                                          .days         = 10,
                                          .is_authority = true };
    struct certificate_spec of_server = {
        .subject = "localhost", .days = 5, .names = NAMES, .name_count = 4
    };
    int rc = certificate_make(&ca, &of_ca, NULL, &err);

    return rc == 0 ? certificate_make(&server, &of_server, &ca, &err) : rc;
}

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, strlen(text)), (long)strlen(text));
    close(fd);
}

/* What openssl, which is not ours, says of both: its first 16 KiB. */
static const char *ask_openssl(const char *command)
{
    static char said[16384];
    char        line[512], ca_path[] = "/tmp/srv-ca-XXXXXX", cert_path[] = "/tmp/srv-cert-XXXXXX",
                    key_path[] = "/tmp/srv-key-XXXXXX";
    FILE  *pipe;
    size_t len;

    write_file(ca_path, ca.cert);
    write_file(cert_path, server.cert);
    write_file(key_path, server.key);
    snprintf(line, sizeof(line), "CA=%s CERT=%s KEY=%s; %s 2>&1", ca_path, cert_path, key_path,
             command);
    pipe = popen(line, "r");
    CHECK(pipe != NULL);
    len       = fread(said, 1, sizeof(said) - 1, pipe);
    said[len] = '\0';
    pclose(pipe);
    unlink(ca_path);
    unlink(cert_path);
    unlink(key_path);
    return said;
}

TEST(what_the_authority_signs_is_good_for_servers)
{
    CHECK_INT(make_both(), 0);
    CHECK(strstr(ask_openssl("openssl verify -x509_strict -purpose sslserver -CAfile $CA $CERT"),
                 ": OK"));
    CHECK(strstr(ask_openssl("openssl verify -purpose sslclient -CAfile $CA $CERT"), "unsuitable"));
}

TEST(the_names_are_in_it_hosts_and_addresses_each_as_what_they_are)
{
    const char *said;

    CHECK_INT(make_both(), 0);
    said = ask_openssl("openssl x509 -in $CERT -noout -text");
    CHECK(strstr(said, "DNS:localhost, DNS:*.shop.test, IP Address:127.0.0.1, "
                       "IP Address:0:0:0:0:0:0:0:1"));
    CHECK(strstr(said, "CA:FALSE"));
    CHECK(strstr(said, "prime256v1"));
}

TEST(the_key_is_the_certificates)
{
    CHECK_INT(make_both(), 0);
    CHECK(strstr(ask_openssl("openssl x509 -in $CERT -noout -pubkey > $CA; "
                             "openssl pkey -in $KEY -pubout | cmp - $CA && echo same"),
                 "same"));
}

/* Who trusts the authority would not trust what it signed. */
TEST(an_authority_with_the_key_of_another_signs_nothing)
{
    struct certificate_spec spec = {
        .subject = "localhost", .days = 5, .names = NAMES, .name_count = 4
    };

    CHECK_INT(make_both(), 0);
    memcpy(ca.key, server.key, sizeof(ca.key));
    CHECK_INT(certificate_make(&server, &spec, &ca, &err), ERR_INVALID);
    CHECK_STR(err.text, "the authority's key belongs to another certificate");
}

TEST(two_of_the_same_have_other_keys_and_numbers)
{
    static struct certificate first;

    CHECK_INT(make_both(), 0);
    first = server;
    CHECK_INT(make_both(), 0);
    CHECK(strcmp(first.key, server.key) != 0);
    CHECK(strcmp(first.cert, server.cert) != 0);
}

TEST(only_hosts_and_addresses_are_names)
{
    static const char *const GOOD[] = {
        "a", "a.b", "*.a.b", "a-1.b_c", "1.2.3.4", "::1", "xn--bcher-kva.example"
    };
    static const char *const BAD[] = { "",          "a..b",      ".a",       "a.",    "-a",
                                       "a-",        "*",         "*.",       "a.*.b", "a b",
                                       "b\xc3\xbc", "https://a", "a:1",      "[::1]", "1.2.3.4/8",
                                       "*.com",     "1.2.3",     "1.2.3.256" };
    char                     long_label[70], long_name[300];

    for (size_t i = 0; i < sizeof(GOOD) / sizeof(*GOOD); i++)
        CHECK(certificate_is_name(GOOD[i]));
    for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++)
        CHECK(!certificate_is_name(BAD[i]));
    memset(long_label, 'a', 64);
    long_label[64] = '\0';
    CHECK(!certificate_is_name(long_label));
    CHECK(certificate_is_name(long_label + 1));
    for (int i = 0; i < 254; i++)
        long_name[i] = i % 10 == 9 ? '.' : 'a';
    long_name[254] = '\0';
    CHECK(!certificate_is_name(long_name));
    CHECK(certificate_is_name(long_name + 1));
}

TEST(what_is_no_name_is_refused_by_name)
{
    const char             *names[] = { "good.test", "no name" };
    struct certificate_spec spec = { .subject = "a", .days = 1, .names = names, .name_count = 2 };

    CHECK_INT(certificate_make(&server, &spec, NULL, &err), ERR_INVALID);
    CHECK(strstr(err.text, "\"no name\"") != NULL);
}

TEST(an_issuer_that_is_none_is_refused)
{
    static struct certificate nobody = { .cert = "no PEM", .key = "nor this" };
    struct certificate_spec   spec   = { .subject = "a", .days = 1 };

    CHECK_INT(certificate_make(&server, &spec, &nobody, &err), ERR_INVALID);
    CHECK(strstr(err.text, "authority") != NULL);
}

/* Chromium takes none that has it (RFC 5758, 3.2). */
TEST(no_null_stands_behind_the_algorithm)
{
    CHECK_INT(make_both(), 0);
    CHECK(strstr(ask_openssl("openssl asn1parse -in $CERT"), "NULL") == NULL);
    CHECK(strstr(ask_openssl("openssl asn1parse -in $CA"), "NULL") == NULL);
}

TEST(as_many_names_as_are_allowed_fit)
{
    static char             name[254];
    const char             *names[CERTIFICATE_NAMES_MAX + 1];
    struct certificate_spec of_ca = { .subject = "a", .days = 36500, .is_authority = true };
    struct certificate_spec spec  = { .subject = "a", .days = 1, .names = names };

    for (int i = 0; i < 253; i++)
        name[i] = i % 10 == 9 ? '.' : 'a';
    for (int i = 0; i <= CERTIFICATE_NAMES_MAX; i++)
        names[i] = name;
    spec.name_count = CERTIFICATE_NAMES_MAX;
    CHECK_INT(certificate_make(&ca, &of_ca, NULL, &err), 0);
    CHECK_INT(certificate_make(&server, &spec, &ca, &err), 0);
    CHECK(strstr(ask_openssl("openssl verify -CAfile $CA $CERT"), ": OK"));
    spec.name_count++;
    CHECK_INT(certificate_make(&server, &spec, &ca, &err), ERR_TOO_LARGE);
}

int main(void)
{
    return check_run();
}
