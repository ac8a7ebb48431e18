/* A stream of responses through the gate and the parser, as a call takes them. What comes out must not
 * depend on how the bytes are cut. "HH" at the beginning: HEAD was asked.
 *
 * links: srv_client */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/coding.h"
#include "http/chars.h"
#include "client/client_decode.h"
#include "http/h1_parse.h"
#include "http/h1_response.h"
#include "http/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct h1_limits LIMITS = { .line_bytes = 512, .head_bytes = 2048, .fields = 20 };

static struct arena_pool pool;

struct input {
    struct str all;
    size_t     at;
    size_t     there;
    size_t     step;
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

static void note_fault(struct buf *out, const struct h1_fault *fault)
{
    assert(fault->status >= 400 && fault->status <= 599 && fault->reason);
    buf_printf(out, "refused %s\n", fault->reason);
}

static void note_fields(struct buf *out, const struct field *fields, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert(chars_are_token(fields[i].name) && chars_are_field_value(fields[i].value));
        buf_add_str(out, fields[i].name);
        buf_add_byte(out, ':');
        buf_add_str(out, fields[i].value);
        buf_add_byte(out, '\n');
    }
}

static size_t read_head(struct input *input, struct h1_head_gate *gate, struct buf *out)
{
    h1_gate_init_response(gate);
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

/* The body as its coding has it: whatever it is, decoding ends. */
static void decode(struct response *response, struct str body)
{
    struct coding   *coding = client_decode(response);
    enum coding_step step   = CODING_FULL;
    char             room[4096];
    size_t           made, turns = 0;

    while (coding && (step == CODING_FULL || step == CODING_MORE) && turns++ < 64)
        step = coding_run(coding, &body, true, room, sizeof(room), &made);
    coding_free(coding);
}

static bool read_body(struct input *input, struct arena *arena, struct response *response,
                      struct h1_body *body, struct buf *out)
{
    size_t from = out->len;

    while (response->framing != RESPONSE_NO_BODY) {
        size_t          used;
        struct str      data;
        enum h1_reading reading =
            h1_parse_response_body(arena, body, &LIMITS, input->all.at + input->at,
                                   input->there - input->at, &used, &data, response);

        buf_add_str(out, data);
        input->at += used;
        if (reading == H1_REFUSED) {
            note_fault(out, &body->gate.fault);
            return false;
        }
        if (reading == H1_DONE)
            break;
        if (!used && !offer_more(input))
            return false;
    }
    decode(response, str_from(buf_str(out), from));
    note_fields(out, response->trailers, response->trailer_count);
    return true;
}

static bool read_one(struct input *input, bool answers_head, struct buf *out)
{
    struct arena        arena;
    struct h1_head_gate gate;
    struct response     response;
    struct h1_body      body;
    struct h1_fault     fault = { 0 };
    size_t              end   = read_head(input, &gate, out);
    bool                go_on = false;

    if (!end)
        return false;
    arena_init(&arena, &pool);
    if (!h1_parse_response_head(&arena, str_make(input->all.at + input->at, end), gate.fields,
                                answers_head, &response, &body, &fault)) {
        note_fault(out, &fault);
    } else {
        buf_printf(out, "%u %d %d %llu\n", response.status, response.framing, response.keep_alive,
                   (unsigned long long)response.content_length);
        note_fields(out, response.fields, response.field_count);
        input->at += end;
        go_on = read_body(input, &arena, &response, &body, out);
    }
    arena_reset(&arena);
    return go_on;
}

static void read_stream(struct str all, size_t step, struct buf *out)
{
    bool         answers_head = all.len && all.at[0] == 'H' && all.len > 1 && all.at[1] == 'H';
    struct input input        = { .all = answers_head ? str_from(all, 1) : all, .step = step };

    buf_init(out, 1024 * 1024);
    while (read_one(&input, answers_head, out))
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
