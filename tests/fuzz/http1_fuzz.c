/* A stream of requests through the gate and the parser, as a connection takes them. What comes out
 * must not depend on how the bytes are cut, and must keep what the gate promises.
 *
 * links: srv_http */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/chars.h"
#include "http/h1_parse.h"
#include "http/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct h1_limits LIMITS = { .line_bytes = 512, .head_bytes = 2048, .fields = 20 };

static struct arena_pool pool;

/* What was offered so far of all there is. */
struct input {
    struct str all;
    size_t     at;    /* used up */
    size_t     there; /* offered */
    size_t     step;  /* bytes more each time */
};

static bool offer_more(struct input *input)
{
    if (input->there == input->all.len)
        return false;
    input->there += input->step;
    if (input->there > input->all.len)
        input->there = input->all.len;
    return true;
}

/* --- what came out, as text -------------------------------------------------------------------------- */

static void note_fault(struct buf *out, const struct h1_fault *fault)
{
    assert(fault->status >= 400 && fault->status <= 599 && fault->reason);
    buf_printf(out, "refused %u %s\n", fault->status, fault->reason);
}

static void note_fields(struct buf *out, const struct field *fields, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert(chars_are_token(fields[i].name) && chars_are_field_value(fields[i].value));
        for (size_t at = 0; at < fields[i].name.len; at++)
            assert(fields[i].name.at[at] < 'A' || fields[i].name.at[at] > 'Z');
        assert(fields[i].id == field_id_of(fields[i].name));
        buf_add_str(out, fields[i].name);
        buf_add_byte(out, ':');
        buf_add_str(out, fields[i].value);
        buf_add_byte(out, '\n');
    }
}

static void note_request(struct buf *out, const struct request *request)
{
    assert(request->target.len && request->path.len);
    assert(!request->has_body || request->chunked || request->content_length > 0);
    assert(request->version_minor > 0 || !request->chunked);
    buf_add_str(out, request->method);
    buf_add_byte(out, ' ');
    buf_add_str(out, request->target);
    buf_add_byte(out, ' ');
    buf_add_str(out, request->host);
    buf_printf(out, " %d %d %llu\n", request->keep_alive, request->expects_continue,
               (unsigned long long)request->content_length);
    note_fields(out, request->fields, request->field_count);
}

/* --- reading ------------------------------------------------------------------------------------------ */

/* Bytes of the head, or 0: it is not complete or was refused. */
static size_t read_head(struct input *input, struct h1_head_gate *gate, struct buf *out)
{
    h1_gate_init(gate);
    for (;;) {
        enum h1_reading reading =
            h1_gate_head(gate, &LIMITS, input->all.at + input->at, input->there - input->at);

        if (reading == H1_REFUSED)
            note_fault(out, &gate->fault);
        if (reading == H1_DONE)
            return gate->scanned;
        if (reading == H1_REFUSED || !offer_more(input))
            return 0;
    }
}

static bool read_body(struct input *input, struct arena *arena, struct request *request,
                      struct h1_body *body, struct buf *out)
{
    uint64_t total = 0;

    for (;;) {
        size_t          used;
        struct str      data;
        enum h1_reading reading = h1_parse_body(arena, body, &LIMITS, input->all.at + input->at,
                                                input->there - input->at, &used, &data, request);

        total += data.len;
        assert(total <= h1_body_announced(body, request));
        buf_add_str(out, data);
        input->at += used;
        if (reading == H1_REFUSED) {
            note_fault(out, &body->gate.fault);
            return false;
        }
        if (reading == H1_DONE) {
            assert(total == h1_body_announced(body, request));
            note_fields(out, request->trailers, request->trailer_count);
            return true;
        }
        if (!used && !offer_more(input))
            return false;
    }
}

/* One request; false: the stream is not read any further. */
static bool read_request(struct input *input, struct buf *out)
{
    struct arena        arena;
    struct h1_head_gate gate;
    struct request      request;
    struct h1_body      body;
    struct h1_fault     fault = { 0 };
    size_t              end   = read_head(input, &gate, out);
    bool                go_on = false;

    if (!end)
        return false;
    arena_init(&arena, &pool);
    if (!h1_parse_head(&arena, str_make(input->all.at + input->at + gate.start, end - gate.start),
                       gate.fields, &request, &body, &fault)) {
        note_fault(out, &fault);
    } else {
        note_request(out, &request);
        input->at += end;
        go_on = !request.has_body || read_body(input, &arena, &request, &body, out);
    }
    arena_reset(&arena);
    return go_on;
}

static void read_stream(struct str all, size_t step, struct buf *out)
{
    struct input input = { .all = all, .step = step };

    buf_init(out, 1024 * 1024);
    while (read_request(&input, out))
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str all = str_make((const char *)bytes, len);
    struct buf whole, cut;

    if (!pool.free_max) {
        arena_pool_init(&pool, 4);
        h1_parse_init();
    }
    read_stream(all, len ? len : 1, &whole);
    for (size_t step = 1; step <= 7; step += 3) {
        read_stream(all, step, &cut);
        assert(str_is(buf_str(&whole), buf_str(&cut)) || (!whole.len && !cut.len));
        buf_fini(&cut);
    }
    buf_fini(&whole);
    return 0;
}
