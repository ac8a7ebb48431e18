#include "bind/lconfig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "support/check.h"

static char       path[] = "/tmp/srv-lconfig-test-XXXXXX";
static char       seen[256];
static struct err err;

static int note(const char *name, const char *value, void *arg, struct err *fault)
{
    size_t len = strlen(seen);

    (void)arg;
    (void)fault;
    snprintf(seen + len, sizeof(seen) - len, "%s=%s;", name, value ? value : "(none)");
    return 0;
}

/* What CODE sets, or its result code. */
static int read_code(const char *code)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    fputs(code, file);
    fclose(file);
    seen[0] = '\0';
    return lconfig_read(path, note, NULL, &err);
}

TEST(settings_come_as_text_in_the_order_of_their_names)
{
    CHECK_INT(read_code("return { timeout = '5s', dev = true, port = 80 }"), 0);
    CHECK_STR(seen, "dev=true;port=80;timeout=5s;");
}

TEST(a_list_of_texts_comes_as_a_flag_would_say_it)
{
    CHECK_INT(read_code("return { secret = { 'new', 'old' }, host = { 'one' } }"), 0);
    CHECK_STR(seen, "host=one;secret=new,old;");
}

TEST(a_list_that_cannot_be_said_so_is_refused_with_its_place)
{
    CHECK_INT(read_code("return { secret = { 'a', 'b,c' } }"), ERR_INVALID);
    CHECK(strstr(err.text, "secret[2]") != NULL);
    CHECK_INT(read_code("return { secret = { 5 } }"), ERR_INVALID);
    CHECK(strstr(err.text, "secret[1]") != NULL);
}

TEST(an_empty_list_is_told_from_an_empty_text)
{
    CHECK_INT(read_code("return { proxy_protocol = {}, unix = '' }"), 0);
    CHECK_STR(seen, "proxy_protocol=(none);unix=;");
}

TEST(who_requires_srv_is_told_what_there_is_instead)
{
    CHECK_INT(read_code("\nlocal srv = require 'srv'\nreturn {}"), ERR_INVALID);
    CHECK(strstr(err.text, ":2: config.lua runs before srv is there") != NULL);
    CHECK(strstr(err.text, "os.getenv(\"NAME\")") != NULL);
    CHECK_INT(read_code("return { host = os.getenv 'PATH' and 'a' }"), 0);
}

TEST(values_by_name_come_as_a_flag_would_say_them)
{
    CHECK_INT(read_code("return { shared = { cache = '64MiB' } }"), 0);
    CHECK_STR(seen, "shared=cache=64MiB;");
    CHECK_INT(read_code("return { shared = { a = 5, b = '1MiB' } }"), 0);
    CHECK(strcmp(seen, "shared=a=5,b=1MiB;") == 0 || strcmp(seen, "shared=b=1MiB,a=5;") == 0);
    CHECK_INT(read_code("return { shared = { ['a=b'] = 5 } }"), ERR_INVALID);
    CHECK_INT(read_code("return { shared = { a = {} } }"), ERR_INVALID);
    CHECK(strstr(err.text, "shared") != NULL);
}

TEST(what_is_no_table_of_settings_is_refused)
{
    CHECK_INT(read_code("return 5"), ERR_INVALID);
    CHECK_INT(read_code("return { print }"), ERR_INVALID);
    CHECK_INT(read_code("return { port = print }"), ERR_INVALID);
    CHECK(strstr(err.text, "port") != NULL);
    CHECK_INT(read_code("retur {"), ERR_INVALID);
    CHECK(strstr(err.text, ":1:") != NULL);
}

TEST(a_list_of_tables_of_texts_keeps_what_belongs_together)
{
    CHECK_INT(read_code("return { tls = { { 'a.pem', 'a.key' }, { cert = 'b.pem' } } }"), 0);
    CHECK_STR(seen, "tls=a.pem a.key,cert=b.pem;");
    CHECK_INT(read_code("return { tls = { { cert = 'a=b' } } }"), ERR_INVALID);
    CHECK(strstr(err.text, "tls[1]") != NULL);
    CHECK_INT(read_code("return { tls = { { { 'deeper' } } } }"), ERR_INVALID);
    CHECK(strstr(err.text, "tls[1]") != NULL);
}

int main(void)
{
    int failed;
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    failed = check_run();
    unlink(path);
    return failed;
}
