/* server/profiler_answer.h - profiles as lines of JSON (docs/internals/profiler.md), piece by piece:
 * there may be hundreds of thousands. */
#ifndef SERVER_PROFILER_ANSWER_H
#define SERVER_PROFILER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct profile_store;
struct profiler_answer;

enum { PROFILER_PIECE_LINES = 400 }; /* stacks; some 100 us */

/* STORES has one for each worker, NULL where it did not hand its samples over; all are borrowed. NULL:
 * no memory. */
struct profiler_answer *profiler_answer_open(struct profile_store *const stores[], unsigned count);
/* Tells of STORES from now on, as many as before: frames that were told stay told. False: no memory. */
bool profiler_answer_turn_to(struct profiler_answer *answer, struct profile_store *const stores[]);
void profiler_answer_close(struct profiler_answer *answer); /* NULL is fine */

/* Appends the next lines to OUT, each with its line break. False: those were all. */
bool profiler_answer_next(struct profiler_answer *answer, struct buf *out);

/* Appends the fields `samples`, `waits`, `lost`, `compiled` (and `note`), `silent`. */
void profiler_answer_sums(const struct profiler_answer *answer, struct buf *out);

#endif
