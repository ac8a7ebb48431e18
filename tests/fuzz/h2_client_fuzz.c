/* A connection of our HTTP/2 client: the input is what its server says, in pieces, and between them what those do
 * who ask. Whatever comes, each stream ends once, what lies unread stays within its window, what goes out are
 * well-formed frames, and in the end nobody is forgotten.
 *
 * links: srv_client */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/err.h"
#include "client/h2_client.h"
#include "http/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    CALLS      = 8,
    WINDOW     = 10000, /* once the server has said that it knows; till then: */
    WINDOW_MAX = 65535,
    PIECE      = 700, /* of what goes out at once */
    FRAME_HEAD = 9,
    FRAME_MAX  = 16384,
    PREFACE    = 24,
    SAID_MAX   = 4 * 1024 * 1024, /* from here on nobody writes more */
    OUT_MAX    = 8 * 1024 * 1024,
};

struct call {
    struct h2_client_stream stream;
    bool                    is_open, has_head;
    size_t                  unread;
};

static struct h2_client *client;
static struct call       calls[CALLS];
static struct buf        said; /* by the client */

/* --- what is told ----------------------------------------------------------------------------------------- */

static struct call *call_of(struct h2_client_stream *stream)
{
    struct call *call = container_of(stream, struct call, stream);

    assert(call->is_open);
    return call;
}

static void on_field(struct h2_client_stream *stream, struct str name, struct str value)
{
    call_of(stream);
    assert(name.len && name.at[0] != ':');
    assert(str_find(value, '\n') == value.len && str_find(value, '\r') == value.len);
}

static void on_head(struct h2_client_stream *stream)
{
    struct call *call = call_of(stream);

    assert(!call->has_head && stream->status >= 200 && stream->status <= 999);
    call->has_head = true;
}

/* "X" is the end of it for who asked. */
static void on_data(struct h2_client_stream *stream, struct str piece)
{
    struct call *call = call_of(stream);

    assert(call->has_head);
    call->unread += piece.len;
    assert(call->unread <= WINDOW_MAX);
    if (piece.len && piece.at[0] == 'X') {
        call->is_open = false;
        h2_client_cancel(stream);
    }
}

static void on_room(struct h2_client_stream *stream)
{
    call_of(stream);
    h2_client_is_sent(stream);
}

static void on_end(struct h2_client_stream *stream)
{
    struct call *call = call_of(stream);

    assert(call->has_head && !stream->client);
    call->is_open = false;
}

static void on_fault(struct h2_client_stream *stream, enum h2_client_fault fault)
{
    struct call *call = call_of(stream);

    assert(stream->fault && !stream->client);
    call->is_open = false;
}

static const struct h2_client_events EVENTS = { on_field, on_head, on_data,
                                                on_room,  on_end,  on_fault };

/* --- what is done ------------------------------------------------------------------------------------------- */

static void ask(struct call *call, bool has_body)
{
    struct field             fields[]   = { { STR(":method"), STR("POST"), FIELD_OTHER },
                                            { STR(":scheme"), STR("https"), FIELD_OTHER },
                                            { STR(":authority"), STR("a.test"), FIELD_OTHER },
                                            { STR(":path"), STR("/"), FIELD_OTHER } };
    static const char        body[3000] = "body";
    struct h2_client_request request    = {
           .fields      = fields,
           .field_count = ARRAY_LEN(fields),
           .body        = has_body ? str_make(body, sizeof(body)) : STR_NONE,
           .has_more    = has_body,
    };

    if (call->is_open || !h2_client_room(client))
        return;
    *call         = (struct call){ .is_open = true };
    call->is_open = h2_client_request(client, &call->stream, &request);
}

static void write_more(struct call *call)
{
    static const char letters[40000];

    if (call->is_open && said.len < SAID_MAX)
        h2_client_write(&call->stream, str_make(letters, sizeof(letters)));
}

static void take(struct call *call)
{
    h2_client_take(&call->stream, call->unread);
    call->unread = 0;
}

static void cancel(struct call *call)
{
    if (call->is_open)
        h2_client_cancel(&call->stream);
    call->is_open = false;
}

static void produce(void)
{
    char   bytes[PIECE];
    size_t n;

    while ((n = h2_client_produce(client, bytes, sizeof(bytes))) > 0)
        buf_add(&said, bytes, n);
    assert(!said.failed);
}

static void act(uint8_t what)
{
    struct call *call = &calls[what % CALLS];

    switch (what / CALLS % 8) {
    case 0: ask(call, false); break;
    case 1: ask(call, true); break;
    case 2: write_more(call); break;
    case 3:
        if (call->is_open)
            h2_client_end_body(&call->stream);
        break;
    case 4: take(call); break;
    case 5: cancel(call); break;
    default: produce(); break;
    }
}

/* --- what went out -------------------------------------------------------------------------------------------- */

static void check_frames(struct str rest)
{
    rest = str_from(rest, PREFACE);
    while (rest.len >= FRAME_HEAD) {
        const uint8_t *at   = (const uint8_t *)rest.at;
        uint32_t       size = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];

        assert(size <= FRAME_MAX && rest.len >= FRAME_HEAD + size);
        rest = str_from(rest, FRAME_HEAD + size);
    }
    assert(!rest.len);
}

static unsigned count_open(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CALLS; i++)
        count += calls[i].is_open;
    return count;
}

/* --- a conversation --------------------------------------------------------------------------------------------- */

/* A byte says what is done; from 128 on, how many bytes come in, which follow: so many, times eight. */
static void talk(struct str rest)
{
    while (rest.len) {
        uint8_t what = (uint8_t)rest.at[0];
        size_t  len  = (size_t)(what & 0x7f) * 8;

        rest = str_from(rest, 1);
        if (what < 0x80) {
            act(what);
            continue;
        }
        len = len < rest.len ? len : rest.len;
        if (!h2_client_feed(client, rest.at, len))
            assert(h2_client_is_over(client) && h2_client_why(client));
        rest = str_from(rest, len);
        assert(h2_client_under_way(client) == count_open());
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct h2_client_options options = { .streams = CALLS, .window = WINDOW };

    for (unsigned i = 0; i < CALLS; i++)
        calls[i] = (struct call){ 0 };
    buf_init(&said, OUT_MAX);
    if (h2_client_open(&client, &options, &EVENTS, NULL) != 0)
        abort();
    ask(&calls[0], false);
    produce();
    talk(str_make((const char *)bytes, len));
    produce();
    check_frames(buf_str(&said));
    h2_client_lose(client);
    assert(!h2_client_under_way(client) && !count_open());
    h2_client_close(client);
    buf_fini(&said);
    return 0;
}
