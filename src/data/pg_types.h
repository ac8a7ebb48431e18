/* data/pg_types.h - PostgreSQL's types as API section 9 shows them, by OID, from their text form.
 *
 * Text and not binary: only text is the same for every type (numeric, intervals, enums, what
 * extensions add), and reading a number from it costs some 10 ns (docs/internals/postgres.md). */
#ifndef DATA_PG_TYPES_H
#define DATA_PG_TYPES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "data/values.h"

enum pg_kind {
    PG_KIND_TEXT, /* as it is: numeric, uuid, date, enums, and all we do not know */
    PG_KIND_BOOL,
    PG_KIND_INTEGER,
    PG_KIND_REAL,
    PG_KIND_JSON,
    PG_KIND_BYTES,
    PG_KIND_TIMESTAMP,
};

struct pg_type {
    enum pg_kind kind; /* of the elements, where it is an array */
    bool         is_array;
    char         separator; /* between elements */
};

/* From here on OIDs are the database's own: enums, domains, extensions. */
enum { PG_OWN_OIDS = 16384 };

/* PG_OWN_OIDS and above: text. */
struct pg_type pg_type_of(unsigned oid);

/* What the server said of the database's own types. */
struct pg_own_types {
    struct pg_own_type *list; /* owned */
    unsigned            count;
};

enum { PG_OWN_TYPES_MAX = 4096 }; /* more are text */

void pg_own_types_fini(struct pg_own_types *own);
/* Returns whether it is known, or need not be. */
bool pg_own_types_find(const struct pg_own_types *own, unsigned oid, struct pg_type *out);
void pg_own_types_add(struct pg_own_types *own, unsigned oid, bool is_array, char separator);

/* TEXT of KIND as a value whose bytes lie in TEXT or in SCRATCH, which is cleared before. */
void pg_decode(struct value *out, enum pg_kind kind, struct str text, struct buf *scratch);

#endif
