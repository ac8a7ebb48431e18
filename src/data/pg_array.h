/* data/pg_array.h - PostgreSQL's arrays as text: {1,NULL,"a \"b\""}, {{1,2},{3,4}}. */
#ifndef DATA_PG_ARRAY_H
#define DATA_PG_ARRAY_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

enum { PG_ARRAY_DEPTH_MAX = 6 }; /* PostgreSQL's own MAXDIM */

enum pg_array_event {
    PG_ARRAY_OPEN,
    PG_ARRAY_CLOSE,
    PG_ARRAY_NULL,
    PG_ARRAY_ELEMENT,
    PG_ARRAY_END, /* all of the text is read */
    PG_ARRAY_BAD,
};

struct pg_array {
    struct str rest;
    unsigned   depth;
    bool       begun; /* the first brace is read */
    bool       after; /* an element or a closed array stands before */
    char       separator;
    struct buf scratch; /* an element whose escapes were taken away */
    struct str element; /* of ELEMENT; valid until the next call */
};

/* TEXT is borrowed. A lower bound in front ("[2:3]={5,6}") is passed over. */
void pg_array_init(struct pg_array *array, struct str text, char separator);
void pg_array_fini(struct pg_array *array);

/* What comes next. After END and BAD nothing does. */
enum pg_array_event pg_array_next(struct pg_array *array);

/* A JSON array (as our encoder writes it) to an array's text. OF_JSON: what stands in it are JSON
 * documents, else an object in it is one. False: JSON is no array. */
bool pg_array_from_json(struct buf *out, struct str json, bool of_json);

#endif
