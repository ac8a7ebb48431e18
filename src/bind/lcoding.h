/* bind/lcoding.h - answers compressed on their way out (srv.compress): whether, how, and finished
 * bodies. Streams go on in bind/lcoding_stream.
 *
 * An app's rules are hung on a call by a hook; what they make of its answer is found out behind all
 * hooks, when no field changes any more. A call without rules costs one look at a pointer. */
#ifndef BIND_LCODING_H
#define BIND_LCODING_H

#include <stdbool.h>

#include <lua.h>

#include "ev/loop.h"

struct buf;
struct coding;
struct lcall;

/* Of a streamed answer; in the exchange's arena, but for the coding. */
struct lcoder {
    struct coding *coding;
    struct buf    *out;   /* coded; its end is the call's `rest` */
    struct later   flush; /* at the end of a turn in which something was written */
    struct lcall  *call;
    bool           begun; /* FLUSH is set */
};

/* Forgets a coded body, and ends the coder of a stream, if there is one. */
void lcoding_drop(struct lcall *call);

/* Adds `coding_rules`, `use_coding`, `code` and `is_coding` to the module on top. */
void lcoding_register(lua_State *L);

#endif
