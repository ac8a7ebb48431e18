#include "data/redis_command.h"

#include "base/buf.h"
#include "base/compiler.h"

struct entry {
    struct str      word;
    enum redis_kind kind;
    const char     *why;
};

static const char USE_SUBSCRIBE[] = "use r:subscribe or r:psubscribe, which have a connection of "
                                    "their own";
static const char USE_MULTI[]     = "use r:multi, which keeps the commands of others out";
static const char USE_URL[] =
    "user, password and database belong into the URL: all who use it share "
    "its connection";
static const char SHARED[] = "the connection is shared";

/* By their rarity nobody would miss the few that the list lacks: what is not here is PLAIN. */
static const struct entry ENTRIES[] = {
    { STR_INIT("BLPOP"), REDIS_BLOCKING, NULL },
    { STR_INIT("BRPOP"), REDIS_BLOCKING, NULL },
    { STR_INIT("BLMOVE"), REDIS_BLOCKING, NULL },
    { STR_INIT("BLMPOP"), REDIS_BLOCKING, NULL },
    { STR_INIT("BRPOPLPUSH"), REDIS_BLOCKING, NULL },
    { STR_INIT("BZPOPMIN"), REDIS_BLOCKING, NULL },
    { STR_INIT("BZPOPMAX"), REDIS_BLOCKING, NULL },
    { STR_INIT("BZMPOP"), REDIS_BLOCKING, NULL },
    { STR_INIT("WAIT"), REDIS_BLOCKING, NULL },
    { STR_INIT("WAITAOF"), REDIS_BLOCKING, NULL },
    { STR_INIT("SUBSCRIBE"), REDIS_REFUSED, USE_SUBSCRIBE },
    { STR_INIT("PSUBSCRIBE"), REDIS_REFUSED, USE_SUBSCRIBE },
    { STR_INIT("SSUBSCRIBE"), REDIS_REFUSED, USE_SUBSCRIBE },
    { STR_INIT("UNSUBSCRIBE"), REDIS_REFUSED, USE_SUBSCRIBE },
    { STR_INIT("PUNSUBSCRIBE"), REDIS_REFUSED, USE_SUBSCRIBE },
    { STR_INIT("SUNSUBSCRIBE"), REDIS_REFUSED, USE_SUBSCRIBE },
    { STR_INIT("MULTI"), REDIS_REFUSED, USE_MULTI },
    { STR_INIT("EXEC"), REDIS_REFUSED, USE_MULTI },
    { STR_INIT("DISCARD"), REDIS_REFUSED, USE_MULTI },
    { STR_INIT("WATCH"), REDIS_REFUSED, USE_MULTI },
    { STR_INIT("UNWATCH"), REDIS_REFUSED, USE_MULTI },
    { STR_INIT("AUTH"), REDIS_REFUSED, USE_URL },
    { STR_INIT("HELLO"), REDIS_REFUSED, USE_URL },
    { STR_INIT("SELECT"), REDIS_REFUSED, USE_URL },
    { STR_INIT("QUIT"), REDIS_REFUSED, SHARED },
    { STR_INIT("RESET"), REDIS_REFUSED, SHARED },
    { STR_INIT("MONITOR"), REDIS_REFUSED, SHARED },
    { STR_INIT("SYNC"), REDIS_REFUSED, SHARED },
    { STR_INIT("PSYNC"), REDIS_REFUSED, SHARED },
    { STR_INIT("ASKING"), REDIS_REFUSED, SHARED },
    { STR_INIT("READONLY"), REDIS_REFUSED, SHARED },
    { STR_INIT("READWRITE"), REDIS_REFUSED, SHARED },
};

bool redis_command_may_block(struct str word)
{
    return str_is_nocase(word, STR("XREAD")) || str_is_nocase(word, STR("XREADGROUP"));
}

static const struct entry *find(struct str word)
{
    for (size_t i = 0; i < ARRAY_LEN(ENTRIES); i++)
        if (str_is_nocase(word, ENTRIES[i].word))
            return &ENTRIES[i];
    return NULL;
}

/* Without its replies a pipeline is out of step for ever. */
static bool turns_replies_off(struct str word, struct str argument)
{
    return str_is_nocase(word, STR("CLIENT")) && str_is_nocase(argument, STR("REPLY"));
}

enum redis_kind redis_command_kind(struct str word, struct str argument, bool blocks,
                                   const char **why)
{
    static const struct entry PLAIN     = { .kind = REDIS_PLAIN },
                              REPLY_OFF = { .kind = REDIS_REFUSED, .why = SHARED };
    const struct entry *entry           = find(word);

    if (redis_command_may_block(word))
        return blocks ? REDIS_BLOCKING : REDIS_PLAIN;
    if (turns_replies_off(word, argument))
        entry = &REPLY_OFF;
    if (!entry)
        entry = &PLAIN;
    if (why)
        *why = entry->why;
    return entry->kind;
}

bool redis_command_is_multi(struct str word)
{
    const struct entry *entry = find(word);

    return entry && entry->why == USE_MULTI;
}

/* "*3\r\n" and "$5\r\n" */
static void add_count(struct buf *to, char mark, size_t count)
{
    buf_add_byte(to, mark);
    buf_add_u64(to, count);
    buf_add(to, "\r\n", 2);
}

void redis_add_head(struct buf *to, size_t count)
{
    add_count(to, '*', count);
}

void redis_add_word(struct buf *to, struct str word)
{
    add_count(to, '$', word.len);
    buf_add_str(to, word);
    buf_add(to, "\r\n", 2);
}
