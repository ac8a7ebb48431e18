#include "bind/lbody_decode.h"

#include <string.h>

#include "base/coding.h"
#include "bind/lcall.h"

enum { HELD_BYTES = 4096 };

/* In the exchange's arena, but for the coding. What the wire lends is good for this turn only, so it is
 * taken a bit at a time and kept here. */
struct lbody_decoder {
    struct coding *coding;
    struct str     left; /* of HELD: not decoded so far */
    uint64_t       made;
    unsigned       fault;
    bool           waits; /* more comes out of it without more going in */
    bool           done;
    char           held[HELD_BYTES];
};

bool lbody_decode_begin(struct lcall *call, enum codings_id id)
{
    struct lbody_decoder *decoder;
    struct coding        *coding;

    if (call->decoder)
        return true;
    coding = codings_reader(id);
    if (!coding)
        return false;
    decoder         = arena_zalloc(&call->ex->arena, sizeof(*decoder));
    decoder->coding = coding;
    call->decoder   = decoder;
    return true;
}

unsigned lbody_decode_fault(const struct lcall *call)
{
    return call->decoder ? call->decoder->fault : 0;
}

bool lbody_decode_has_more(const struct lcall *call)
{
    const struct lbody_decoder *decoder = call->decoder;

    return decoder && !decoder->fault && (decoder->waits || decoder->left.len);
}

void lbody_decode_drop(struct lcall *call)
{
    if (call->decoder)
        coding_free(call->decoder->coding);
    call->decoder = NULL;
}

static void refill(struct lcall *call)
{
    struct lbody_decoder *decoder = call->decoder;
    struct str            taken;

    if (decoder->left.len)
        return;
    taken = exchange_take_body(call->ex, HELD_BYTES);
    if (taken.len)
        memcpy(decoder->held, taken.at, taken.len);
    decoder->left = str_make(decoder->held, taken.len);
}

static bool is_all_in(const struct lcall *call)
{
    return call->ex->request_state == REQUEST_ENDED && exchange_untaken(call->ex) == 0;
}

/* An empty body has no coding; behind the coded data nothing may stand. */
static void look_at_end(struct lcall *call, enum coding_step step)
{
    struct lbody_decoder *decoder = call->decoder;

    decoder->waits = step == CODING_FULL;
    decoder->done  = step == CODING_DONE;
    if (step == CODING_BROKEN && call->ex->body_bytes == 0)
        decoder->done = true;
    else if (step == CODING_BROKEN)
        decoder->fault = 400;
    if (decoder->made > call->ex->body_limit)
        decoder->fault = 413;
}

size_t lbody_decode(struct lcall *call, char *to, size_t room)
{
    struct lbody_decoder *decoder = call->decoder;
    size_t                len     = 0;

    while (!decoder->fault && len < room) {
        enum coding_step step;
        size_t           made = 0;
        bool             last;

        refill(call);
        last = is_all_in(call);
        if (decoder->done) {
            if (decoder->left.len)
                decoder->fault = 400;
            break;
        }
        if (!decoder->left.len && !decoder->waits && !last)
            break;
        step = coding_run(decoder->coding, &decoder->left, last, to + len, room - len, &made);
        len += made;
        decoder->made += made;
        look_at_end(call, step);
    }
    return decoder->fault ? 0 : len;
}
