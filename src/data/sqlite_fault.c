#include "data/sqlite_fault.h"

#include <stdio.h>

#include "data/fault.h"

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
static int constraint_fault(struct fault *fault, int rc, const char *message, struct str sql)
{
    static const char FAILED[] = " constraint failed: ";
    const char       *at       = strstr(message, FAILED);

    fault_set_in(fault, constraint_code(rc), message, sql, 0);
    if (at)
        snprintf(fault->constraint, sizeof(fault->constraint), "%s", at + strlen(FAILED));
    return -1;
}

int sqlite_fault(struct fault *fault, sqlite3 *handle, int rc, struct str sql)
{
    const char *message = sqlite3_errmsg(handle);

    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT: return constraint_fault(fault, rc, message, sql);
    case SQLITE_INTERRUPT: message = "the statement took too long"; break;
    case SQLITE_BUSY: message = "another process holds the database"; break;
    }
    return fault_set_in(fault, fault_code(rc), message, sql, 0);
}
