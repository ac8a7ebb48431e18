/* tests/support/ws_sides.h - a server's socket and a client's over two memory channels, and what
 * their users saw. */
#ifndef TESTS_SUPPORT_WS_SIDES_H
#define TESTS_SUPPORT_WS_SIDES_H

#include <stdlib.h>

#include "base/clock.h"
#include "ev/advance.h"
#include "ev/loop.h"
#include "ws/ws.h"
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

#endif
