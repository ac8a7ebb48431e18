#include "data/pg_guard.h"

#include "base/compiler.h"

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

/* Block comments nest here. */
static struct str skip_block(struct str sql)
{
    unsigned depth = 0;
    size_t   i     = 0;

    while (i + 1 < sql.len) {
        bool opens  = sql.at[i] == '/' && sql.at[i + 1] == '*';
        bool closes = sql.at[i] == '*' && sql.at[i + 1] == '/';

        depth += opens;
        depth -= closes;
        i += opens || closes ? 2 : 1;
        if (depth == 0)
            return str_from(sql, i);
    }
    return STR_NONE;
}

static struct str skip_line(struct str sql)
{
    size_t len = str_find(sql, '\n'), other = str_find(sql, '\r');

    return str_from(sql, len < other ? len : other);
}

static struct str skip_blank(struct str sql)
{
    for (;;) {
        if (sql.len && (is_space(sql.at[0]) || sql.at[0] == ';' || sql.at[0] == '('))
            sql = str_from(sql, 1);
        else if (str_starts_with(sql, STR("--")))
            sql = skip_line(sql);
        else if (str_starts_with(sql, STR("/*")))
            sql = skip_block(sql);
        else
            return sql;
    }
}

static struct str next_word(struct str *sql)
{
    size_t     len = 0;
    struct str word;

    *sql = skip_blank(*sql);
    while (len < sql->len && is_letter(sql->at[len]))
        len++;
    word = str_make(sql->at, len);
    *sql = str_from(*sql, len);
    return word;
}

struct rule {
    struct str  word;
    const char *shared, *leased; /* NULL: fine */
};

#define TX     "db:tx begins and ends transactions"
#define INNER  "tx:tx makes savepoints, and what becomes of its function ends them"
#define SET    "connections are shared: in db:tx, \"set local\" lasts until its end"
#define LISTEN "db:listen listens"
#define COPY   "db:copy_in and db:copy_out copy"
#define OURS   "statements are prepared by themselves"
#define LASTS  "connections are shared, and this lasts as long as one: in db:tx it ends with it"
#define OPEN   "it lasts no longer than its statement here: use db:tx"

static const struct rule RULES[] = {
    { STR_INIT("begin"), TX, TX },          { STR_INIT("start"), TX, TX },
    { STR_INIT("commit"), TX, TX },         { STR_INIT("end"), TX, TX },
    { STR_INIT("rollback"), TX, TX },       { STR_INIT("abort"), TX, TX },
    { STR_INIT("savepoint"), TX, INNER },   { STR_INIT("release"), TX, INNER },
    { STR_INIT("set"), SET, SET },          { STR_INIT("reset"), SET, SET },
    { STR_INIT("discard"), SET, SET },      { STR_INIT("load"), SET, SET },
    { STR_INIT("listen"), LISTEN, LISTEN }, { STR_INIT("unlisten"), LISTEN, LISTEN },
    { STR_INIT("copy"), COPY, COPY },       { STR_INIT("prepare"), OURS, OURS },
    { STR_INIT("execute"), OURS, OURS },    { STR_INIT("deallocate"), OURS, OURS },
    { STR_INIT("declare"), OPEN, NULL },    { STR_INIT("lock"), OPEN, NULL },
};

/* --- what outlasts a transaction ---------------------------------------------------------------- */

/* The name before the parenthesis at END. */
static struct str word_before(struct str sql, size_t end)
{
    size_t start;

    while (end > 0 && is_space(sql.at[end - 1]))
        end--;
    for (start = end; start > 0 && is_letter(sql.at[start - 1]);)
        start--;
    return str_make(sql.at + start, end - start);
}

/* Behind the opening parenthesis: the last argument is `true`. */
static bool ends_with_true(struct str rest)
{
    unsigned depth  = 0;
    bool     quoted = false;
    size_t   i      = 0;

    for (; i < rest.len; i++) {
        char byte = rest.at[i];

        quoted ^= byte == '\'';
        if (!quoted && byte == ')' && depth-- == 0)
            break;
        depth += !quoted && byte == '(';
    }
    return i < rest.len && str_is_nocase(word_before(rest, i), STR("true"));
}

static bool is_lock(struct str word)
{
    return str_is_nocase(word, STR("pg_advisory_lock")) ||
           str_is_nocase(word, STR("pg_advisory_lock_shared")) ||
           str_is_nocase(word, STR("pg_try_advisory_lock")) ||
           str_is_nocase(word, STR("pg_try_advisory_lock_shared"));
}

static bool calls_what_outlasts(struct str sql)
{
    for (size_t at = str_find(sql, '('); at < sql.len;) {
        struct str word = word_before(sql, at);

        if (is_lock(word) ||
            (str_is_nocase(word, STR("set_config")) && !ends_with_true(str_from(sql, at + 1))))
            return true;
        at += 1 + str_find(str_from(sql, at + 1), '(');
    }
    return false;
}

static bool drops_on_commit(struct str sql)
{
    struct str clause = STR("on commit drop");

    for (size_t i = 0; i + clause.len <= sql.len; i++)
        if (str_is_nocase(str_make(sql.at + i, clause.len), clause))
            return true;
    return false;
}

static bool makes_temporary(struct str sql)
{
    struct str word = next_word(&sql);

    if (!str_is_nocase(word, STR("create")))
        return false;
    word = next_word(&sql);
    if (str_is_nocase(word, STR("local")) || str_is_nocase(word, STR("global")))
        word = next_word(&sql);
    return (str_is_nocase(word, STR("temp")) || str_is_nocase(word, STR("temporary"))) &&
           !drops_on_commit(sql);
}

bool pg_guard_outlasts(struct str sql)
{
    return calls_what_outlasts(sql) || makes_temporary(sql);
}

/* --- the guard ---------------------------------------------------------------------------------- */

static bool lasts_as_long_as_the_transaction(struct str rest)
{
    struct str word = next_word(&rest);

    return str_is_nocase(word, STR("local")) || str_is_nocase(word, STR("constraints"));
}

const char *pg_guard(struct str sql, bool in_transaction)
{
    bool       lasts = !in_transaction && pg_guard_outlasts(sql);
    struct str word  = next_word(&sql);

    for (size_t i = 0; i < ARRAY_LEN(RULES); i++) {
        const struct rule *rule = &RULES[i];

        if (!str_is_nocase(word, rule->word))
            continue;
        if (in_transaction && str_is(rule->word, STR("set")) &&
            lasts_as_long_as_the_transaction(sql))
            return NULL;
        return in_transaction ? rule->leased : rule->shared;
    }
    return lasts ? LASTS : NULL;
}

bool pg_guard_reads(struct str sql)
{
    struct str word = next_word(&sql);

    return str_is_nocase(word, STR("select")) || str_is_nocase(word, STR("values")) ||
           str_is_nocase(word, STR("table")) || str_is_nocase(word, STR("with"));
}
