/* data/pg_params.h - a statement's parameters as the protocol takes them: beside the text, never in
 * it. */
#ifndef DATA_PG_PARAMS_H
#define DATA_PG_PARAMS_H

#include <stdbool.h>

#include "base/buf.h"

struct fault;
struct values;

enum {
    PG_PARAMS_MAX       = 65535, /* the protocol's */
    PG_PARAMS_BYTES_MAX = 64 * 1024 * 1024,
};

/* Used again for each statement of a connection. */
struct pg_params {
    struct buf   text;
    const char **values;
    size_t      *offsets; /* in `text`, until all of it stands */
    int         *lengths;
    int         *formats; /* 0: text, 1: binary */
    unsigned     room;
    unsigned     count;
};

void pg_params_init(struct pg_params *params);
void pg_params_fini(struct pg_params *params);

/* Whether VALUES can only be written when the types of the parameters are known: a JSON array is
 * either an array or a document. */
bool pg_params_need_types(const struct values *values);

/* TYPES: TYPE_COUNT OIDs as the server described them, or none of them. VALUES must outlive the use
 * of it. 0, or -1 and FAULT. */
int pg_params_fill(struct pg_params *params, const struct values *values, const unsigned *types,
                   unsigned type_count, struct fault *fault);

#endif
