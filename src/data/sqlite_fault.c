#include "data/sqlite_fault.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

#include "data/fault.h"

enum { EXCERPT_BYTES = 200 }; /* of a statement, in messages */

static const char *constraint_code(int extended)
{
    switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID: return "unique";
    case SQLITE_CONSTRAINT_FOREIGNKEY: return "foreign_key";
    case SQLITE_CONSTRAINT_NOTNULL: return "not_null";
    default: return "check"; /* CHECK, strict types, a trigger's raise() */
    }
}

static const char *fault_code(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT: return constraint_code(rc);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "conflict";
    case SQLITE_INTERRUPT: return "timeout";
    case SQLITE_TOOBIG: return "too_large";
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
    case SQLITE_NOMEM: return "unavailable";
    default: return "sql";
    }
}

/* "UNIQUE constraint failed: articles.guid" names it behind the colon; that of a foreign key
 * does not. A trigger's raise() has its own words. */
static int constraint_fault(struct fault *fault, int rc, const char *message)
{
    static const char FAILED[] = " constraint failed: ";
    const char       *code     = constraint_code(rc);
    const char       *at       = strstr(message, FAILED);
    const char       *name     = at ? at + strlen(FAILED) : "";

    if (strcmp(code, "unique") == 0)
        fault_set(fault, code, "already exists: %s", name);
    else if (strcmp(code, "not_null") == 0)
        fault_set(fault, code, "must have a value: %s", name);
    else if (strcmp(code, "foreign_key") == 0)
        fault_set(fault, code, "refers to a row that does not exist, or is still referred to");
    else if (at)
        fault_set(fault, code, "not allowed by the check %s", name);
    else
        fault_set(fault, code, "%s", message);
    snprintf(fault->constraint, sizeof(fault->constraint), "%s", name);
    return -1;
}

int sqlite_fault_in(struct fault *fault, const char *code, const char *message, struct str sql)
{
    bool whole;

    while (sql.len && isspace((unsigned char)sql.at[sql.len - 1]))
        sql.len--;
    whole = sql.len <= EXCERPT_BYTES;
    return fault_set(fault, code, "%s, in: %.*s%s", message, whole ? (int)sql.len : EXCERPT_BYTES,
                     sql.at, whole ? "" : "...");
}

int sqlite_fault(struct fault *fault, sqlite3 *handle, int rc, struct str sql)
{
    const char *message = sqlite3_errmsg(handle);

    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT: return constraint_fault(fault, rc, message);
    case SQLITE_INTERRUPT: message = "the statement took too long"; break;
    case SQLITE_BUSY: message = "another process holds the database"; break;
    }
    return sqlite_fault_in(fault, fault_code(rc), message, sql);
}
