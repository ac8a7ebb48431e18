/* bind/lbody_decode.h - request bodies that come compressed, inflated as they come.
 *
 * The limit of the body holds for what comes out (the wire holds what goes in against it as well), so a
 * small request cannot become a large one. */
#ifndef BIND_LBODY_DECODE_H
#define BIND_LBODY_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/codings.h"

struct lcall;

/* From now on the call's body is read through a decoder. False: no memory. Again is fine. */
bool lbody_decode_begin(struct lcall *call, enum codings_id id);
/* The status it is refused with: 400, 413; 0: none so far. */
unsigned lbody_decode_fault(const struct lcall *call);
/* Something can be made without more bytes from the wire. */
bool lbody_decode_has_more(const struct lcall *call);
/* At most ROOM bytes of what is there; 0: nothing without more of the body, its end, or a fault. */
size_t lbody_decode(struct lcall *call, char *to, size_t room);
/* NULL in call->decoder is fine. */
void lbody_decode_drop(struct lcall *call);

#endif
