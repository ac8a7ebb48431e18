#include "bind/lcoding_stream.h"

#include "base/buf.h"
#include "base/coding.h"
#include "base/compiler.h"
#include "bind/lanswer.h"
#include "bind/lcall.h"
#include "bind/lcoding.h"

enum { PIECE_BYTES = 4096 };

/* The wire has taken all but `rest`, which is the end of what was coded. */
static void make_room(struct lcall *call)
{
    struct buf *out = call->coder->out;

    if (call->rest.len)
        buf_consume(out, out->len - call->rest.len);
    else
        buf_clear(out);
}

/* One step with the room that is there, at least PIECE_BYTES. IN NULL: a flush. */
static enum coding_step step(struct lcoder *coder, struct str *in, bool last)
{
    struct buf      *out = coder->out;
    char            *to  = buf_reserve(out, PIECE_BYTES);
    enum coding_step how;
    size_t           made;

    if (!to)
        return CODING_BROKEN;
    how = in ? coding_run(coder->coding, in, last, to, out->room - out->len, &made)
             : coding_flush(coder->coding, to, out->room - out->len, &made);
    out->len += made;
    return how;
}

static bool code(struct lcall *call, struct str *in, bool last)
{
    enum coding_step how;

    make_room(call);
    do
        how = step(call->coder, in, last);
    while (how == CODING_FULL);
    call->rest = buf_str(call->coder->out);
    return how != CODING_BROKEN;
}

/* Where the wire has no room, on_room() goes on with it. */
static void flush(struct later *later)
{
    struct lcoder *coder = container_of(later, struct lcoder, flush);
    struct lcall  *call  = coder->call;

    if (call->ended || call->gone)
        return;
    if (code(call, NULL, false))
        lanswer_push_rest(call);
    else
        lanswer_abort(call);
}

bool lcoding_write(struct lcall *call, struct str chunk, bool last)
{
    struct lcoder *coder = call->coder;

    if (!coder->begun) {
        later_init(&coder->flush, flush);
        coder->begun = true;
    }
    if (!code(call, &chunk, last))
        return false;
    if (!last && chunk.at)
        loop_later(call->ex->loop, &coder->flush);
    return true;
}
