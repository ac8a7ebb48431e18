/* tests/support/ws_sides.h - a server's socket and a client's over two memory channels, and what
 * their users saw; frames of a client that says what it likes. */
#ifndef TESTS_SUPPORT_WS_SIDES_H
#define TESTS_SUPPORT_WS_SIDES_H

#include <stdlib.h>

#include "base/clock.h"
#include "ev/advance.h"
#include "ev/loop.h"
#include "ws/ws.h"
#include "support/check.h"
#include "support/memory_channel.h"

struct side {
    struct ws            *ws; /* NULL: closed */
    struct memory_channel channel;
    bool                  echoes;
    bool                  holds; /* a message stays in its handler */
    unsigned              messages, rooms, closes;
    enum ws_kind          kind;
    struct buf            last; /* the last message */
    unsigned              code;
    char                  reason[256];
    void (*then)(struct side *side, struct str data); /* beside that, for each message */
};

static struct loop      *loop;
static struct ws_shared *shared;
static struct advance    advance;

static const struct ws_options ANYTHING = { .limit = 1024 * 1024, .buffer = 1024 * 1024 };

static void side_on_message(struct ws *ws, enum ws_kind kind, struct str data)
{
    struct side *side = ws_arg(ws);

    side->messages++;
    side->kind = kind;
    buf_clear(&side->last);
    buf_add_str(&side->last, data);
    if (side->then)
        side->then(side, data);
    if (side->echoes)
        ws_send(ws, kind, data);
    if (!side->holds && side->ws)
        ws_next(ws);
}

static void side_on_room(struct ws *ws)
{
    ((struct side *)ws_arg(ws))->rooms++;
}

static void side_on_closed(struct ws *ws, unsigned code, struct str reason)
{
    struct side *side = ws_arg(ws);

    side->closes++;
    side->code = code;
    side->ws   = NULL;
    snprintf(side->reason, sizeof(side->reason), "%.*s", STR_ARG(reason));
}

static const struct ws_user side_user = { side_on_message, side_on_room, side_on_closed };

static void side_open(struct side *side, const struct ws_options *options)
{
    buf_init(&side->last, SIZE_MAX);
    if (ws_open(&side->ws, shared, &side->channel.base, options, &side_user, side) != 0)
        abort();
}

static void side_close(struct side *side)
{
    if (side->ws)
        ws_abort(side->ws);
    side->ws = NULL;
    memory_channel_fini(&side->channel);
    buf_fini(&side->last);
}

static void world_on_done(void *arg)
{
    loop_break(loop);
}

/* The clock is held. */
static inline void world_open(void)
{
    if (loop_open(&loop, NULL) < 0 || ws_shared_open(&shared, loop, NULL) < 0)
        abort();
    loop_hold_clock(loop);
    advance_init(&advance, loop, NULL, world_on_done, NULL);
}

static inline void world_close(void)
{
    ws_shared_close(shared);
    loop_close(loop);
}

static inline void pass_ms(uint64_t ms)
{
    advance_start(&advance, ms * NS_PER_MS);
    loop_run(loop);
}

/* Until nothing is left to do. */
static inline void settle(void)
{
    pass_ms(0);
}

/* --- a server and its client ------------------------------------------------------------------------ */

static struct side server, client;

static inline void open_sides(const struct ws_options *for_server,
                              const struct ws_options *for_client)
{
    struct ws_options options = *for_client;

    options.client = true;
    world_open();
    memset(&server, 0, sizeof(server));
    memset(&client, 0, sizeof(client));
    memory_channel_pair(loop, &server.channel, &client.channel);
    side_open(&server, for_server);
    side_open(&client, &options);
}

/* The client is the test, which says bytes. */
static inline void open_server(const struct ws_options *options)
{
    world_open();
    memset(&server, 0, sizeof(server));
    memset(&client, 0, sizeof(client));
    memory_channel_pair(loop, &server.channel, &client.channel);
    side_open(&server, options);
}

static inline void close_sides(void)
{
    side_close(&server);
    side_close(&client);
    world_close();
}

/* A client's frame whose mask is zeros. LENGTH may lie. */
static inline void add_frame(struct buf *to, unsigned first, uint64_t length, struct str payload)
{
    buf_add_byte(to, (char)first);
    if (length < 126) {
        buf_add_byte(to, (char)(0x80 | length));
    } else if (length < 65536) {
        buf_add_byte(to, (char)0xfe);
        for (int shift = 8; shift >= 0; shift -= 8)
            buf_add_byte(to, (char)(length >> shift));
    } else {
        buf_add_byte(to, (char)0xff);
        for (int shift = 56; shift >= 0; shift -= 8)
            buf_add_byte(to, (char)(length >> shift));
    }
    buf_add(to, "\0\0\0\0", 4);
    buf_add_str(to, payload);
}

static inline void say_frame(unsigned first, struct str payload)
{
    struct buf bytes;

    buf_init(&bytes, SIZE_MAX);
    add_frame(&bytes, first, payload.len, payload);
    memory_channel_feed(&server.channel, buf_str(&bytes));
    buf_fini(&bytes);
}

static inline void say_ping(void)
{
    say_frame(0x89, STR("p"));
}

/* What the server has said, and it is forgotten. */
static inline bool server_said(const char *bytes, size_t len)
{
    struct buf *heard = &client.channel.in;
    bool        is    = heard->len == len && memcmp(heard->at, bytes, len) == 0;

    if (!is)
        for (size_t i = 0; i < heard->len && i < 40; i++)
            fprintf(stderr, "%02x ", (unsigned char)heard->at[i]);
    buf_clear(heard);
    return is;
}

#define CHECK_SAID(bytes)      CHECK(server_said(bytes, sizeof(bytes) - 1))
#define CHECK_LAST(side, text) CHECK_MEM((side).last.at, (side).last.len, text, strlen(text))

static inline struct str letters(size_t len)
{
    static char text[1200 * 1024];

    memset(text, 'x', len);
    return str_make(text, len);
}

/* --- many servers' sockets ---------------------------------------------------------------------------- */

enum { MANY = 1000 };

static struct side many[MANY];

static inline void open_many(const struct ws_options *options)
{
    world_open();
    memset(many, 0, sizeof(many));
    for (unsigned i = 0; i < MANY; i++) {
        memory_channel_init(&many[i].channel, loop, NULL);
        side_open(&many[i], options);
    }
}

static inline void close_many(void)
{
    for (unsigned i = 0; i < MANY; i++)
        side_close(&many[i]);
    world_close();
}

#endif
