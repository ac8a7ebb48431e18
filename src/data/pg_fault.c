#include "data/pg_fault.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/str.h"
#include "data/fault.h"
#include "data/pg_lib.h"

struct state_code {
    const char *state; /* the whole SQLSTATE, or its beginning */
    const char *code;
};

/* The first that fits. */
static const struct state_code CODES[] = {
    { "08P01", "sql" }, /* a wrong number of parameters */
    { "08", "unavailable" },    { "23505", "unique" },
    { "23P01", "unique" }, /* exclusion: what is there overlaps */
    { "23503", "foreign_key" }, { "23001", "foreign_key" },
    { "23502", "not_null" },    { "23", "check" },
    { "40002", "check" },       { "40003", "unavailable" },
    { "40", "conflict" },       { "44", "check" },
    { "53", "unavailable" },    { "55P03", "conflict" },
    { "57014", "timeout" },     { "57P", "unavailable" },
    { "58", "unavailable" },
};

const char *pg_fault_code(const char *sqlstate)
{
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++)
        if (strncmp(sqlstate, CODES[i].state, strlen(CODES[i].state)) == 0)
            return CODES[i].code;
    return "sql";
}

static const char *field(const struct pg_lib *lib, const PGresult *result, int which)
{
    const char *text = lib->resultErrorField(result, which);

    return text ? text : "";
}

/* The byte at the character that POSITION counts to, from 1; 0 where it says nothing. */
static size_t offset_of(struct str sql, const char *position)
{
    uint64_t left;
    size_t   at = 0;

    if (!str_to_u64(str_of(position), UINT32_MAX, &left))
        return 0;
    for (; at < sql.len && left > 1; at++)
        if (at + 1 < sql.len && ((unsigned char)sql.at[at + 1] & 0xc0) != 0x80)
            left--;
    return at;
}

static unsigned line_at(struct str script, size_t offset)
{
    unsigned line = 1;

    for (size_t i = 0; i < offset; i++)
        line += script.at[i] == '\n';
    return line;
}

/* "articles.guid" would be SQLite's; here constraints have names: "articles_guid_key". */
static void note_constraint(struct fault *fault, const struct pg_lib *lib, const PGresult *result)
{
    const char *name   = field(lib, result, PG_DIAG_CONSTRAINT_NAME);
    const char *column = field(lib, result, PG_DIAG_COLUMN_NAME);
    const char *table  = field(lib, result, PG_DIAG_TABLE_NAME);

    if (name[0])
        snprintf(fault->constraint, sizeof(fault->constraint), "%s", name);
    else if (column[0])
        snprintf(fault->constraint, sizeof(fault->constraint), "%s%s%s", table, table[0] ? "." : "",
                 column);
}

/* A column that numbers itself in SQLite is the usual one without a value. */
static const char *hint_of(const struct pg_lib *lib, const PGresult *result)
{
    bool is_id = strcmp(field(lib, result, PG_DIAG_SQLSTATE), "23502") == 0 &&
                 strcmp(field(lib, result, PG_DIAG_COLUMN_NAME), "id") == 0;

    return is_id ? "a column numbers itself by: generated always as identity"
                 : field(lib, result, PG_DIAG_MESSAGE_HINT);
}

void pg_fault_from_result(struct fault *fault, const struct pg_lib *lib, const PGresult *result,
                          struct str sql, bool is_script)
{
    const char *state   = field(lib, result, PG_DIAG_SQLSTATE);
    const char *message = field(lib, result, PG_DIAG_MESSAGE_PRIMARY);
    const char *code    = state[0] ? pg_fault_code(state) : "unavailable";
    const char *hint    = hint_of(lib, result);
    const char *place   = field(lib, result, PG_DIAG_STATEMENT_POSITION);
    size_t      at      = offset_of(sql, place);
    char        text[256];

    if (!message[0])
        message = lib->resultErrorMessage(result);
    snprintf(text, sizeof(text), "%s%s%s", message, hint[0] ? "; hint: " : "", hint);
    if (is_script && place[0])
        fault_set(fault, code, "%u: %s", line_at(sql, at), text);
    else if (is_script || sql.len == 0)
        fault_set(fault, code, "%s", text);
    else
        fault_set_in(fault, code, text, sql, at);
    note_constraint(fault, lib, result);
}

void pg_fault_from_conn(struct fault *fault, const struct pg_lib *lib, const PGconn *pq,
                        const char *what)
{
    const char *message = pq ? lib->errorMessage(pq) : "out of memory";
    size_t      len     = strlen(message);

    while (len && message[len - 1] == '\n')
        len--;
    fault_set(fault, "unavailable", "%s%s%.*s", what, len ? ": " : "", (int)len, message);
}
