/* data/pg_fault.h - what a PostgreSQL server refuses, by SQLSTATE, as API section 9 calls it. */
#ifndef DATA_PG_FAULT_H
#define DATA_PG_FAULT_H

#include <stdbool.h>

#include "base/str.h"

struct fault;
struct pg_conn;
struct pg_lib;
struct pg_result;

/* The code for a SQLSTATE of five characters. */
const char *pg_fault_code(const char *sqlstate);

/* A result that is an error. SQL: the text that it happened in, or empty. A script's message begins
 * with "LINE: ", that of a statement ends with the statement. */
void pg_fault_from_result(struct fault *fault, const struct pg_lib *lib,
                          const struct pg_result *result, struct str sql, bool is_script);
/* A connection that broke, or could not be made: `unavailable`. WHAT is the message's beginning. */
void pg_fault_from_conn(struct fault *fault, const struct pg_lib *lib, const struct pg_conn *pq,
                        const char *what);

#endif
