/* bind/lanswer.h - from what a call has recorded to bytes for the wire.
 *
 * Text is sent from the Lua string, a value as JSON is encoded straight into a buffer of the
 * worker's: no Lua memory is made for an answer. What is longer than a piece goes out piece by
 * piece as the wire has room, long after its task has ended. */
#ifndef BIND_LANSWER_H
#define BIND_LANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

struct err;
struct field;
struct lcall;

enum {
    LANSWER_PIECE_BYTES = 64 * 1024,
};

enum lanswer_outcome {
    LANSWER_SENT,   /* handed over, or the client has gone */
    LANSWER_MISUSE, /* it cannot be sent: *ERR says why; the call is as before */
    LANSWER_CALLS,  /* a __tojson stands in the value: resolve it in Lua, then send again */
};

/* Sends what is recorded; the value of TEXT and JSON is at INDEX of L. Protected. Not for streams. */
enum lanswer_outcome lanswer_send(struct lcall *call, lua_State *L, int index, struct err *err);

/* An answer of C alone, in place of whatever was recorded: a problem (RFC 9457) with STATUS, for
 * when Lua cannot make one. Cuts the connection if the head is out. */
void lanswer_plain(struct lcall *call, unsigned status);

/* Sends the head of a body that follows by lanswer_write(). False: the client has gone. */
bool lanswer_commit(struct lcall *call);
/* Ends a streamed body. False: it is shorter than its Content-Length, so it was cut. */
bool lanswer_end(struct lcall *call, const struct field *trailers, unsigned trailer_count);
/* Cuts: the client can tell that something is missing. */
void lanswer_abort(struct lcall *call);

/* The wire takes more: goes on with what is left of the body, wakes who waits to write. */
void lanswer_room(struct lcall *call);
/* Whoever waits for the end of what a writer has begun goes on. */
void lanswer_wake_ender(struct lcall *call);
/* Hands what is in call->rest to the wire. True: nothing is left, or the client has gone. */
bool lanswer_push_rest(struct lcall *call);

/* Drops what was recorded and the fields that described it; the others stay (API, section 4). */
void lanswer_drop(struct lcall *call, lua_State *L);

/* Closes the file that is recorded, if one is. */
void lanswer_close_file(struct lcall *call);

/* 204, 205, 304 (RFC 9110, 6.4.1). */
bool lanswer_has_no_body(unsigned status);

#endif
