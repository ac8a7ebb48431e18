#include "data/redis_bus.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/rand.h"
#include "data/bus.h"
#include "data/fault.h"
#include "data/redis.h"
#include "data/redis_call.h"
#include "data/redis_command.h"
#include "data/redis_conn.h"
#include "data/redis_sub.h"
#include "ev/loop.h"
#include "ev/timer.h"

struct redis_hearing {
    struct bus      *bus;
    char             origin[RAND_ID_LEN]; /* this process, in what it sends */
    _Atomic uint64_t owner;               /* address of the struct redis_bus that hears; 0: none */
    _Atomic uint64_t until_ms;
};

struct redis_bus {
    struct redis_client  *client; /* held */
    struct redis_hearing *hearing;
    struct loop          *loop;
    unsigned              users;
    struct buf            prefix; /* of channels: the app's, and "bus:" */
    struct redis_sub     *sub;    /* NULL: another worker hears */
    struct timer          beat;
    uint64_t              sent, unsent, heard;
    uint64_t              losing;  /* messages, since the last that went out */
    bool                  is_deaf; /* said in the log */
};

/* --- the process's ------------------------------------------------------------------------------------- */

int redis_hearing_open(struct redis_hearing **out, struct bus *bus, struct err *err)
{
    struct redis_hearing *hearing = calloc(1, sizeof(*hearing));

    if (!hearing)
        return err_set(err, ERR_MEMORY, "out of memory");
    hearing->bus = bus;
    rand_id(hearing->origin);
    *out = hearing;
    return 0;
}

void redis_hearing_close(struct redis_hearing *hearing)
{
    free(hearing);
}

static uint64_t id_of(const struct redis_bus *bus)
{
    return (uint64_t)(uintptr_t)bus;
}

static bool is_owner(const struct redis_bus *bus)
{
    return atomic_load(&bus->hearing->owner) == id_of(bus);
}

/* A claim that was let go or has run out is anybody's. */
static bool claim(struct redis_bus *bus)
{
    struct redis_hearing *hearing = bus->hearing;
    uint64_t              now     = loop_now_ms(bus->loop);
    uint64_t              owner   = atomic_load(&hearing->owner);

    if (owner != id_of(bus)) {
        if (owner != 0 && now < atomic_load(&hearing->until_ms))
            return false;
        if (!atomic_compare_exchange_strong(&hearing->owner, &owner, id_of(bus)))
            return false;
    }
    atomic_store(&hearing->until_ms, now + REDIS_BUS_LEASE_MS);
    return true;
}

/* --- hearing --------------------------------------------------------------------------------------------- */

static void stop_hearing(struct redis_bus *bus)
{
    redis_sub_close(bus->sub);
    bus->sub = NULL;
}

/* ORIGIN, then what was published. */
static void pass_on(struct redis_bus *bus, const struct redis_message *message)
{
    struct str origin = str_make(bus->hearing->origin, RAND_ID_LEN);
    struct str topic  = message->channel;
    struct err err;

    if (message->text.len < origin.len || str_starts_with(message->text, origin) ||
        topic.len <= bus->prefix.len)
        return;
    bus->heard++;
    if (bus_publish(bus->hearing->bus, str_from(topic, bus->prefix.len),
                    str_from(message->text, origin.len), &err) < 0)
        log_warn("bus message of another machine dropped", "reason=%s", err.text);
}

/* Once, until it hears: what is lost later, the subscription tells by itself. */
static void note_fault(struct redis_bus *bus, const struct fault *fault)
{
    if (fault && !bus->is_deaf) {
        log_warn("bus hears no other machine", "reason=%s", fault->text);
        bus->is_deaf = true;
    }
}

static void on_event(struct redis_sub *sub, void *arg)
{
    struct redis_bus    *bus = arg;
    struct redis_message message;

    if (!is_owner(bus) || redis_sub_fault(sub)) {
        note_fault(bus, redis_sub_fault(sub));
        stop_hearing(bus); /* the next beat tries again */
        return;
    }
    if (bus->is_deaf)
        log_info("bus hears other machines", "server=%s", redis_client_place(bus->client)->name);
    bus->is_deaf = false;
    while (redis_sub_first(sub, &message)) {
        pass_on(bus, &message);
        redis_sub_next(sub);
    }
}

/* In a pattern of Redis these are no letters. */
static void add_escaped(struct buf *to, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '*' || text.at[i] == '?' || text.at[i] == '[' || text.at[i] == '\\')
            buf_add_byte(to, '\\');
        buf_add_byte(to, text.at[i]);
    }
}

static void start_hearing(struct redis_bus *bus)
{
    struct buf pattern;
    struct str word;

    buf_init(&pattern, 4 * REDIS_BUS_PREFIX_MAX);
    add_escaped(&pattern, buf_str(&bus->prefix));
    buf_add_byte(&pattern, '*');
    word     = buf_str(&pattern);
    bus->sub = pattern.failed ? NULL : redis_sub_open(bus->client, true, &word, 1, on_event, bus);
    buf_fini(&pattern);
}

static void on_beat(struct timer *timer)
{
    struct redis_bus *bus = container_of(timer, struct redis_bus, beat);

    if (!claim(bus))
        stop_hearing(bus);
    else if (!bus->sub)
        start_hearing(bus);
    timer_start(&bus->beat, bus->loop, REDIS_BUS_BEAT_MS);
}

/* --- life -------------------------------------------------------------------------------------------------- */

static struct redis_bus *new_bus(struct redis_client *client, struct redis_hearing *hearing,
                                 struct str prefix)
{
    struct redis_bus *bus = calloc(1, sizeof(*bus));

    if (!bus)
        return NULL;
    bus->client  = client;
    bus->hearing = hearing;
    bus->loop    = redis_client_place(client)->loop;
    buf_init(&bus->prefix, REDIS_BUS_PREFIX_MAX);
    buf_add_str(&bus->prefix, prefix);
    buf_add_str(&bus->prefix, STR("bus:"));
    if (bus->prefix.failed) {
        buf_fini(&bus->prefix);
        free(bus);
        return NULL;
    }
    redis_client_hold(client);
    timer_init(&bus->beat, on_beat);
    timer_start(&bus->beat, bus->loop, 0);
    return bus;
}

struct redis_bus *redis_bus_get(struct redis_client *client, struct redis_hearing *hearing,
                                struct str prefix)
{
    void **slot = redis_client_slot(client);

    if (!*slot)
        *slot = new_bus(client, hearing, prefix);
    if (*slot)
        ((struct redis_bus *)*slot)->users++;
    return *slot;
}

void redis_bus_let_go(struct redis_bus *bus)
{
    uint64_t id = id_of(bus);

    assert(bus->users > 0);
    if (--bus->users > 0)
        return;
    stop_hearing(bus);
    timer_stop(&bus->beat, bus->loop);
    atomic_compare_exchange_strong(&bus->hearing->owner, &id, 0);
    *redis_client_slot(bus->client) = NULL;
    redis_client_let_go(bus->client);
    buf_fini(&bus->prefix);
    free(bus);
}

/* --- sending ------------------------------------------------------------------------------------------------ */

static void drop(struct redis_call *call)
{
    redis_call_fini(call);
    free(call);
}

static struct redis_call *new_call(const struct redis_bus *bus, struct str topic, struct str bytes)
{
    struct redis_call *call = malloc(sizeof(*call));
    struct buf         channel, message;

    if (!call)
        return NULL;
    redis_call_init(call);
    call->done = call->drop = drop;
    buf_init(&channel, REDIS_BUS_PREFIX_MAX + BUS_TOPIC_BYTES_MAX);
    buf_init(&message, RAND_ID_LEN + BUS_BYTES_MAX);
    buf_add_str(&channel, buf_str(&bus->prefix));
    buf_add_str(&channel, topic);
    buf_add(&message, bus->hearing->origin, RAND_ID_LEN);
    buf_add_str(&message, bytes);
    redis_add_head(&call->request, 3);
    redis_add_word(&call->request, STR("PUBLISH"));
    redis_add_word(&call->request, buf_str(&channel));
    redis_add_word(&call->request, buf_str(&message));
    buf_fini(&channel);
    buf_fini(&message);
    return call;
}

/* Said at the first one, and how many there were when it is over. */
static void note_lost(struct redis_bus *bus, const char *why)
{
    bus->unsent++;
    if (bus->losing++ == 0)
        log_warn("bus messages do not reach other machines", "reason=%s", why);
}

static void note_sent(struct redis_bus *bus)
{
    bus->sent++;
    if (bus->losing)
        log_info("bus messages reach other machines again", "lost=%llu",
                 (unsigned long long)bus->losing);
    bus->losing = 0;
}

void redis_bus_publish(struct redis_bus *bus, struct str topic, struct str bytes)
{
    struct redis_call *call = new_call(bus, topic, bytes);

    if (!call) {
        note_lost(bus, "out of memory");
    } else if (redis_start(bus->client, call) < 0) {
        note_lost(bus, call->fault.text);
        drop(call);
    } else {
        note_sent(bus);
    }
}

void redis_bus_stats(const struct redis_bus *bus, struct redis_bus_stats *out)
{
    *out = (struct redis_bus_stats){ .hears  = bus->sub != NULL,
                                     .is_up  = bus->sub && redis_sub_is_up(bus->sub),
                                     .sent   = bus->sent,
                                     .unsent = bus->unsent,
                                     .heard  = bus->heard };
}
