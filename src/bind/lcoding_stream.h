/* bind/lcoding_stream.h - streamed answers compressed on their way out.
 *
 * Nothing is held back longer than a turn of the loop: what was written in it is flushed at its end, as
 * the wire sends then. So a handler that writes without waiting is coded in large blocks, and a client
 * of one that waits has all that was written before. */
#ifndef BIND_LCODING_STREAM_H
#define BIND_LCODING_STREAM_H

#include <stdbool.h>

#include "base/str.h"

struct lcall;

/* Codes CHUNK to the call's `rest`, behind what the wire has not taken yet. LAST: the text has ended.
 * False: no memory. */
bool lcoding_write(struct lcall *call, struct str chunk, bool last);

#endif
