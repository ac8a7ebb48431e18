/* base/units.h - "250ms" "5s" "10m" "2h" "7d" and "64KiB" "1MiB" "2GiB" as numbers. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* A number without a unit counts seconds; a fraction is fine ("1.5s"). False: not a duration, or
 * longer than 1,000 years. */
bool units_duration_ms(struct str text, uint64_t *ms);

/* A number without a unit counts bytes; KiB MiB GiB are powers of 1,024, kB MB GB of 1,000. */
bool units_bytes(struct str text, uint64_t *bytes);

/* Cuts "name=size" off a list like "cache=64MiB,jobs=1MiB". False: *REST is empty, or begins with
 * something else. */
bool units_next_size(struct str *rest, struct str *name, uint64_t *bytes);

#endif
