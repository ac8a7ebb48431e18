/* data/pg_guard.h - which statements an app may not send: those that would change a connection for
 * the next user of it, or end a transaction behind our back. */
#ifndef DATA_PG_GUARD_H
#define DATA_PG_GUARD_H

#include <stdbool.h>

#include "base/str.h"

/* NULL: fine. Else a constant text that says what to do instead. */
const char *pg_guard(struct str sql, bool in_transaction);

/* Whether it changes the session beyond its transaction, going by its words: what a function of the
 * database does is not seen. */
bool pg_guard_outlasts(struct str sql);
/* Whether it only reads, going by its first word, so that a cursor can be declared for it. */
bool pg_guard_reads(struct str sql);

#endif
