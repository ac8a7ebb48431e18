/* data/fault.h - what a database answers when it cannot do what it was asked (API, section 9). */
#ifndef DATA_FAULT_H
#define DATA_FAULT_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/str.h"

struct fault {
    /* A constant: "unique" "foreign_key" "check" "not_null" "conflict" "sql" "timeout" "busy"
     * "unavailable" "too_large" "closed"; NULL: nothing went wrong. */
    const char *code;
    char        constraint[256]; /* "articles.guid"; empty where the database does not name it */
    char        text[512];       /* one line for who runs the app: it names tables and statements */
};

static inline void fault_clear(struct fault *fault)
{
    fault->code          = NULL;
    fault->constraint[0] = fault->text[0] = '\0';
}

static inline bool fault_is_set(const struct fault *fault)
{
    return fault->code != NULL;
}

/* Returns -1, so that a caller can `return fault_set(fault, ...)`. Control characters of the text
 * become spaces: it goes into logs, and statements have lines. */
int fault_set(struct fault *fault, const char *code, const char *format, ...) PRINTF_LIKE(3, 4);
/* MESSAGE, and the part around byte AT of the statement it is about: "MESSAGE, in: SQL". */
int fault_set_in(struct fault *fault, const char *code, const char *message, struct str sql,
                 size_t at);

/* The sentence that clients may read for a CODE that is theirs to mend, the same for every database;
 * NULL: none. */
const char *fault_told(const char *code);

#endif
