#include "data/redis_command.h"

#include "base/buf.h"
#include "support/check.h"

TEST(a_command_is_its_words_with_their_lengths)
{
    struct buf out;

    buf_init(&out, 1024);
    redis_add_head(&out, 3);
    redis_add_word(&out, STR("SET"));
    redis_add_word(&out, STR("k"));
    redis_add_word(&out, str_make("a\r\n\0b", 5));
    CHECK_MEM(out.at, out.len, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\n\0b\r\n", 31);
    buf_fini(&out);
}

static enum redis_kind kind(const char *word, bool blocks)
{
    const char *why = NULL;

    return redis_command_kind(str_of(word), STR_NONE, blocks, &why);
}

TEST(what_waits_at_the_server_is_known_in_any_case)
{
    CHECK_INT(kind("BLPOP", false), REDIS_BLOCKING);
    CHECK_INT(kind("bzpopmin", false), REDIS_BLOCKING);
    CHECK_INT(kind("XREAD", false), REDIS_PLAIN);
    CHECK_INT(kind("XREAD", true), REDIS_BLOCKING);
    CHECK_INT(kind("xreadgroup", true), REDIS_BLOCKING);
    CHECK_INT(kind("GET", true), REDIS_PLAIN);
}

TEST(what_changes_a_shared_connection_is_refused_with_a_way_round)
{
    const char *why = NULL;

    CHECK_INT(redis_command_kind(STR("subscribe"), STR("a"), false, &why), REDIS_REFUSED);
    CHECK(strstr(why, "r:subscribe"));
    CHECK_INT(redis_command_kind(STR("WATCH"), STR("a"), false, &why), REDIS_REFUSED);
    CHECK(strstr(why, "r:multi"));
    CHECK_INT(redis_command_kind(STR("SELECT"), STR("1"), false, NULL), REDIS_REFUSED);
    CHECK_INT(redis_command_kind(STR("client"), STR("reply"), false, &why), REDIS_REFUSED);
    CHECK_INT(redis_command_kind(STR("client"), STR("list"), false, &why), REDIS_PLAIN);
    CHECK(redis_command_is_multi(STR("exec")) && !redis_command_is_multi(STR("select")));
}

int main(void)
{
    return check_run();
}
