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

static unsigned line_at(const char *script, const char *position)
{
    unsigned line = 1;
    uint64_t left; /* characters, not bytes */

    if (!str_to_u64(str_of(position), UINT32_MAX, &left))
        return line;

    for (const char *at = script; *at && left > 1; at++) {
        if (((unsigned char)*at & 0xc0) != 0x80)
            left--;
        line += *at == '\n';
    }
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

void pg_fault_from_result(struct fault *fault, const struct pg_lib *lib, const PGresult *result,
                          const char *script)
{
    const char *state     = field(lib, result, PG_DIAG_SQLSTATE);
    const char *message   = field(lib, result, PG_DIAG_MESSAGE_PRIMARY);
    const char *position  = field(lib, result, PG_DIAG_STATEMENT_POSITION);
    const char *hint      = field(lib, result, PG_DIAG_MESSAGE_HINT);
    char        place[16] = "";

    if (!message[0])
        message = lib->resultErrorMessage(result);
    if (script && position[0])
        snprintf(place, sizeof(place), "%u: ", line_at(script, position));
    fault_set(fault, state[0] ? pg_fault_code(state) : "unavailable", "%s%s%s%s", place, message,
              hint[0] ? "; hint: " : "", hint);
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
