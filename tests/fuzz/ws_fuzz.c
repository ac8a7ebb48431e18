/* WebSocket: what a peer says after the handshake, and what a client offers in it.
 * links: srv_ws
 *
 * The first byte says what the rest is (see enum kind). Frames: however they are cut, the same messages
 * and the same end come of them; what is answered is a sequence of well-formed frames, with nothing behind
 * a close frame; and nothing is left. Handshakes: what is answered may stand in a field, and our own
 * client agrees with it. */
#include <stdint.h>
#include <stdlib.h>

#include "ev/loop.h"
#include "http/chars.h"
#include "http/message.h"
#include "ws/ws.h"
#include "ws/ws_handshake.h"
#include "ws/ws_reader.h"
#include "support/memory_channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum kind { KIND_DEFLATE = 1, KIND_CLIENT = 2, KIND_HANDSHAKE = 4 };

enum { LIMIT = 20 * 1000, TURNS_MAX = 1000 * 1000 };

static void must(bool claim)
{
    if (!claim)
        abort();
}

/* --- frames ------------------------------------------------------------------------------------------- */

static struct loop      *loop;
static struct ws_shared *shared;

/* What came of the bytes. */
struct outcome {
    uint64_t messages;
    uint64_t digest; /* of all their kinds and bytes */
    unsigned code;
    bool     closed;
};

static void digest(struct outcome *outcome, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        outcome->digest = (outcome->digest ^ (unsigned char)bytes.at[i]) * UINT64_C(1099511628211);
}

static void on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct outcome *outcome = ws_arg(ws);

    must(data.len <= LIMIT);
    outcome->messages++;
    digest(outcome, kind == WS_TEXT ? STR("text ") : STR("binary "));
    digest(outcome, data);
    must(ws_send(ws, kind, data) == 0);
    ws_next(ws);
}

static void on_closed(struct ws *ws, unsigned code, struct str reason)
{
    struct outcome *outcome = ws_arg(ws);

    must(!outcome->closed);
    outcome->closed = true;
    outcome->code   = code;
}

/* The frames that the socket has sent; the other side takes every one of them. */
static void check_answers(struct str sent, unsigned kind)
{
    struct ws_rules   rules  = { .limit   = UINT64_MAX,
                                 .masked  = (kind & KIND_CLIENT) != 0,
                                 .deflate = (kind & KIND_DEFLATE) != 0 };
    struct ws_reader *reader = ws_reader_new();
    enum ws_step      step;

    must(reader != NULL);
    while ((step = ws_reader_step(reader, &sent, &rules, false)) != WS_STEP_WANT) {
        must(step != WS_STEP_BROKEN);
        if (step == WS_STEP_CONTROL && reader->opcode == WS_OP_CLOSE)
            must(sent.len == 0 && reader->given == reader->used);
    }
    must(ws_reader_is_at_rest(reader));
    ws_reader_free(reader);
}

static void run_turns(struct memory_channel *channel)
{
    for (unsigned turn = 0; channel->base.user && channel->told_bytes; turn++) {
        must(turn < TURNS_MAX);
        memory_channel_turn(&channel->turn);
    }
}

/* PIECE bytes at a fill; 0: all. */
static struct outcome speak(struct str bytes, unsigned kind, size_t piece)
{
    static const struct ws_user user    = { .on_message = on_message, .on_closed = on_closed };
    struct ws_options           options = { .client  = (kind & KIND_CLIENT) != 0,
                                            .deflate = (kind & KIND_DEFLATE) != 0,
                                            .limit   = LIMIT,
                                            .buffer  = LIMIT };
    struct outcome              outcome = { .digest = 14695981039346656037U };
    struct memory_channel       ours, theirs;
    struct ws                  *ws;

    memory_channel_pair(loop, &ours, &theirs);
    theirs.room = SIZE_MAX;
    ours.piece  = piece;
    buf_add_str(&ours.in, bytes);
    ours.peer_ended = true;
    must(ws_open(&ws, shared, &ours.base, &options, &user, &outcome) == 0);
    run_turns(&ours);
    must(outcome.closed);
    check_answers(buf_str(&theirs.in), kind);
    memory_channel_fini(&ours);
    memory_channel_fini(&theirs);
    must(ws_shared_counts(shared).sockets == 0 && ws_shared_counts(shared).lent == 0);
    return outcome;
}

static void check_frames(struct str bytes, unsigned kind)
{
    static const size_t PIECES[] = { 1, 2, 7, 4097 };
    struct outcome      whole    = speak(bytes, kind, 0);

    for (unsigned i = 0; i < sizeof(PIECES) / sizeof(PIECES[0]); i++) {
        struct outcome again = speak(bytes, kind, PIECES[i]);

        must(again.messages == whole.messages && again.digest == whole.digest);
        must(again.code == whole.code);
    }
}

/* --- handshakes ------------------------------------------------------------------------------------------ */

enum { FIELDS_MAX = 16 };

static const struct str NAMES[] = {
    STR_INIT("sec-websocket-key"),
    STR_INIT("sec-websocket-version"),
    STR_INIT("sec-websocket-protocol"),
    STR_INIT("sec-websocket-extensions"),
    STR_INIT("upgrade"),
    STR_INIT("connection"),
    STR_INIT("sec-websocket-accept"),
};

/* Lines "3permessage-deflate": the number of a name, and a value. What no wire would let through is
 * left out. */
static unsigned read_fields(struct str text, struct field *fields)
{
    unsigned   count = 0;
    struct str line;

    while (count < FIELDS_MAX && str_next(&text, '\n', &line)) {
        struct str value = line.len ? str_trim(str_from(line, 1)) : STR("");

        if (line.len && chars_are_field_value(value))
            fields[count++] = (struct field){
                NAMES[(unsigned char)line.at[0] % (sizeof(NAMES) / sizeof(NAMES[0]))], value,
                FIELD_OTHER
            };
    }
    return count;
}

static void check_accepted(struct ws_offer *offer)
{
    static const struct str OURS[]   = { STR_INIT("chat"), STR_INIT("b") };
    struct str              protocol = ws_choose_protocol(offer, OURS, 2);
    struct field            fields[WS_ANSWER_FIELDS_MAX];
    unsigned                count = ws_answer_fields(offer, protocol, true, fields);

    must(count <= WS_ANSWER_FIELDS_MAX);
    must(!offer->deflate.on || (offer->deflate.bits >= 8 && offer->deflate.bits <= 15));
    must(!protocol.len || str_is(protocol, OURS[0]) || str_is(protocol, OURS[1]));
    for (unsigned i = 0; i < count; i++)
        must(chars_are_token(fields[i].name) && chars_are_field_value(fields[i].value));
}

static void check_handshake(struct str text)
{
    struct field     fields[FIELDS_MAX];
    struct request   request = { .method        = STR("GET"),
                                 .upgrade       = STR("websocket"),
                                 .version_major = 1,
                                 .version_minor = 1,
                                 .fields        = fields };
    struct ws_ask    ask     = { .protocols = STR("chat, b"), .deflate = true };
    struct ws_offer  offer;
    struct ws_agreed agreed;
    unsigned         status;

    request.field_count = read_fields(text, fields);
    memcpy(ask.key, "dGhlIHNhbXBsZSBub25jZQ==", WS_KEY_LEN);
    status = ws_accepts(&request, &offer);
    must(status == 0 || ((status == 400 || status == 426) && offer.reason));
    if (status == 0)
        check_accepted(&offer);
    if (!ws_check_answer(&ask, 101, fields, request.field_count, &agreed))
        must(agreed.reason != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str rest = str_make((const char *)bytes + 1, len - 1);

    if (!len)
        return 0;
    if (!loop)
        must(loop_open(&loop, NULL) == 0 && ws_shared_open(&shared, loop, NULL) == 0);
    if (bytes[0] & KIND_HANDSHAKE)
        check_handshake(rest);
    else
        check_frames(rest, bytes[0]);
    return 0;
}
