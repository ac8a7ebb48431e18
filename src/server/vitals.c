#include "server/vitals.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/str.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "server/profiler_answer.h"
#include "server/sockets.h"
#include "server/vitals_clock.h"
#include "server/vitals_worker.h"
#include "server/worker.h"
#include "vm/profile.h"
#include "vm/profile_store.h"
#include "vm/profile_wait.h"

enum { HAUL_BYTES_MAX = 4 * 1024 * 1024 };

struct session;

/* What a worker is lent, on its way there and back. */
struct errand {
    struct message        begin, end, back;
    struct session       *session;
    struct vitals_worker *vitals;
};

/* A line of the clock's, on its way to the client. */
struct told {
    struct message  message;
    struct session *session;
    struct buf      line;
};

struct session {
    struct vitals          *vitals; /* NULL: given up, only messages come back; control thread */
    struct admin_client    *client;
    struct vitals_clock    *clock; /* NULL: stopped */
    struct profiler_answer *answer;
    struct timer            silence;
    struct inbox           *control;
    uint64_t                began_ns;
    uint64_t                dropped; /* samples for which the client was too slow */
    unsigned                back;    /* errands */
    atomic_uint             out;     /* messages that come here, and one for the session itself */
    unsigned                count;
    struct errand           errands[];
};

struct vitals {
    struct admin_command  command;
    struct vitals_options options;
    struct session       *session; /* NULL: nobody looks */
};

/* --- the end of a session --------------------------------------------------------------------------- */

/* On any thread: at the process' end, a loop drops what it has not delivered. */
static void let_go(struct session *session)
{
    if (atomic_fetch_sub(&session->out, 1) > 1)
        return;
    for (unsigned i = 0; i < session->count; i++)
        vitals_worker_close(session->errands[i].vitals);
    free(session);
}

/* The client has its answer, or is gone. */
static void leave(struct session *session)
{
    struct vitals *vitals = session->vitals;

    timer_stop(&session->silence, vitals->options.loop);
    profiler_answer_close(session->answer);
    session->vitals = NULL;
    vitals->session = NULL;
    profile_release();
    let_go(session);
}

static void finish(struct session *session)
{
    struct buf line;

    buf_init(&line, HAUL_BYTES_MAX);
    buf_printf(&line, "{\"done\":true,\"seconds\":%.3f,\"dropped\":%llu,\"silent\":%u}",
               (double)(clock_mono_ns() - session->began_ns) / 1e9,
               (unsigned long long)session->dropped, session->count - session->back);
    admin_say(session->client, buf_str(&line));
    buf_fini(&line);
    admin_end(session->client);
    leave(session);
}

static void on_silence(struct timer *timer)
{
    finish(container_of(timer, struct session, silence));
}

static void deliver_back(struct message *message)
{
    struct session *session = container_of(message, struct errand, back)->session;

    if (++session->back == session->count && session->vitals)
        finish(session);
    let_go(session);
}

static void drop_back(struct message *message)
{
    let_go(container_of(message, struct errand, back)->session);
}

/* --- what the clock says -------------------------------------------------------------------------------- */

static void deliver_line(struct message *message)
{
    struct told    *told    = container_of(message, struct told, message);
    struct session *session = told->session;

    if (session->vitals && !told->line.failed)
        admin_say(session->client, buf_str(&told->line));
    message->drop(message);
}

static void drop_line(struct message *message)
{
    struct told *told = container_of(message, struct told, message);

    let_go(told->session);
    buf_fini(&told->line);
    free(told);
}

static void on_line(struct buf *line, void *arg)
{
    struct session *session = arg;
    struct told    *told    = malloc(sizeof(*told));

    if (!told) {
        buf_fini(line);
        return;
    }
    atomic_fetch_add(&session->out, 1);
    told->message = (struct message){ .deliver = deliver_line, .drop = drop_line };
    told->session = session;
    told->line    = *line;
    inbox_post(session->control, &told->message);
}

/* --- what the workers say ----------------------------------------------------------------------------------- */

static unsigned errand_of(const struct session *session, const struct vitals_worker *vitals)
{
    unsigned i = 0;

    while (i + 1 < session->count && session->errands[i].vitals != vitals)
        i++;
    return i;
}

static double seconds_of(const struct session *session, uint64_t at_ns)
{
    return at_ns > session->began_ns ? (double)(at_ns - session->began_ns) / 1e9 : 0;
}

static void add_lead(const struct session *session, const struct vitals_haul *haul, unsigned worker,
                     struct buf *out)
{
    const struct vitals_turn *turn = &haul->turn;

    buf_printf(out, "{\"seen\":%u,\"t\":%.3f,\"samples\":%llu,\"waits\":%llu", worker,
               seconds_of(session, turn->ended_ns), (unsigned long long)haul->store.samples,
               (unsigned long long)haul->store.waits);
    if (turn->took_ns)
        buf_printf(out, ",\"long\":%.3f,\"ran\":%.3f,\"stalled\":%.3f", (double)turn->took_ns / 1e6,
                   (double)turn->ran_ns / 1e6, (double)turn->stalled_ns / 1e6);
    buf_add_str(out, STR("}\n"));
}

static void say_haul(struct session *session, struct vitals_haul *haul)
{
    struct profile_store *stores[session->count];
    unsigned              worker = errand_of(session, haul->from);
    struct buf            lines;

    for (unsigned i = 0; i < session->count; i++)
        stores[i] = NULL;
    stores[worker] = &haul->store;
    buf_init(&lines, HAUL_BYTES_MAX);
    add_lead(session, haul, worker, &lines);
    if (profiler_answer_turn_to(session->answer, stores))
        while (profiler_answer_next(session->answer, &lines))
            continue;
    lines.len -= lines.len > 0; /* admin_say() adds the last line break */
    admin_say(session->client, buf_str(&lines));
    buf_fini(&lines);
}

static void drop_haul(struct message *message)
{
    struct vitals_haul *haul = container_of(message, struct vitals_haul, message);

    let_go(haul->from->arg);
    vitals_haul_free(haul);
}

static void deliver_haul(struct message *message)
{
    struct vitals_haul *haul    = container_of(message, struct vitals_haul, message);
    struct session     *session = haul->from->arg;

    if (session->vitals && admin_unread(session->client) > VITALS_UNREAD_BYTES)
        session->dropped += haul->store.samples;
    else if (session->vitals)
        say_haul(session, haul);
    drop_haul(message);
}

/* In the worker's thread. */
static void on_haul(struct vitals_haul *haul, void *arg)
{
    struct session *session = arg;

    atomic_fetch_add(&session->out, 1);
    haul->message = (struct message){ .deliver = deliver_haul, .drop = drop_haul };
    inbox_post(session->control, &haul->message);
}

/* --- errands -------------------------------------------------------------------------------------------------- */

static void deliver_begin(struct message *message)
{
    vitals_worker_begin(container_of(message, struct errand, begin)->vitals);
}

static void drop_begin(struct message *message)
{
}

static void deliver_end(struct message *message)
{
    struct errand *errand = container_of(message, struct errand, end);

    vitals_worker_end(errand->vitals);
    inbox_post(errand->session->control, &errand->back);
}

static void drop_end(struct message *message)
{
    let_go(container_of(message, struct errand, end)->session);
}

/* What was lent comes back, whether or not somebody wants to read it. */
static void stop(struct session *session)
{
    vitals_clock_close(session->clock);
    session->clock = NULL;
    for (unsigned i = 0; i < session->count; i++)
        inbox_post(loop_inbox(worker_loop(session->errands[i].vitals->worker)),
                   &session->errands[i].end);
}

static int fill_errands(struct session *session, struct worker **workers, struct err *err)
{
    int rc = 0;

    for (unsigned i = 0; i < session->count && rc == 0; i++) {
        struct errand *errand = &session->errands[i];

        errand->session = session;
        errand->begin   = (struct message){ .deliver = deliver_begin, .drop = drop_begin };
        errand->end     = (struct message){ .deliver = deliver_end, .drop = drop_end };
        errand->back    = (struct message){ .deliver = deliver_back, .drop = drop_back };
        rc              = vitals_worker_open(&errand->vitals, workers[i], on_haul, session, err);
    }
    return rc;
}

static int open_clock(struct session *session, unsigned every_ms, struct err *err)
{
    const struct vitals_options *options = &session->vitals->options;
    struct vitals_target         targets[session->count];
    struct vitals_clock_options  clock = { .targets  = targets,
                                           .count    = session->count,
                                           .lend     = options->lend,
                                           .every_ms = every_ms,
                                           .on_line  = on_line,
                                           .arg      = session };

    for (unsigned i = 0; i < session->count; i++)
        targets[i] =
            (struct vitals_target){ .thread    = worker_thread(options->workers[i]),
                                    .loop      = worker_loop(options->workers[i]),
                                    .vitals    = session->errands[i].vitals,
                                    .listening = sockets_fd(options->sockets, DOOR_APP, i) };
    return vitals_clock_open(&session->clock, &clock, err);
}

static int fill(struct session *session, unsigned every_ms, struct err *err)
{
    struct profile_store *none[session->count];
    int                   rc = fill_errands(session, session->vitals->options.workers, err);

    for (unsigned i = 0; i < session->count; i++)
        none[i] = NULL;
    if (rc == 0) {
        session->answer = profiler_answer_open(none, session->count);
        rc              = session->answer ? 0 : err_set(err, ERR_MEMORY, "no memory for vitals");
    }
    if (rc == 0)
        rc = open_clock(session, every_ms, err);
    if (rc != 0)
        profiler_answer_close(session->answer);
    return rc;
}

static int open_session(struct vitals *vitals, struct admin_client *client, unsigned every_ms,
                        struct err *err)
{
    unsigned        count   = vitals->options.worker_count;
    struct session *session = calloc(1, sizeof(*session) + count * sizeof(session->errands[0]));
    int             rc;

    if (!session)
        return err_set(err, ERR_MEMORY, "no memory for vitals");
    session->vitals   = vitals;
    session->client   = client;
    session->control  = loop_inbox(vitals->options.loop);
    session->count    = count;
    session->began_ns = clock_mono_ns();
    atomic_init(&session->out, count + 1);
    timer_init(&session->silence, on_silence);
    rc = fill(session, every_ms, err);
    if (rc != 0) {
        atomic_store(&session->out, 1);
        let_go(session);
        return rc;
    }
    for (unsigned i = 0; i < count; i++)
        inbox_post(loop_inbox(worker_loop(session->errands[i].vitals->worker)),
                   &session->errands[i].begin);
    vitals->session = session;
    return 0;
}

/* --- the command ------------------------------------------------------------------------------------------- */

static bool read_ms(struct str args, unsigned *ms)
{
    uint64_t value;

    *ms = VITALS_EVERY_MS;
    if (!args.len)
        return true;
    if (!str_to_u64(args, VITALS_EVERY_MS_MAX, &value) || value < VITALS_EVERY_MS_MIN)
        return false;
    *ms = (unsigned)value;
    return true;
}

static void say_begun(const struct session *session, unsigned every_ms)
{
    struct buf line;

    buf_init(&line, HAUL_BYTES_MAX);
    buf_printf(&line,
               "{\"vitals\":true,\"ms\":%u,\"look_ms\":%d,\"wait_ms\":%d,\"long_ms\":%d,"
               "\"workers\":%u}",
               every_ms, VITALS_LOOK_MS, PROFILE_WAIT_MS, VITALS_LONG_MS, session->count);
    admin_say(session->client, buf_str(&line));
    buf_fini(&line);
}

static void begin(struct admin_client *client, struct str args, void *arg)
{
    struct vitals *vitals = arg;
    struct err     err    = { 0 };
    unsigned       every_ms;

    if (!read_ms(args, &every_ms)) {
        admin_fail(client, "vitals takes milliseconds from line to line, %d to %d",
                   VITALS_EVERY_MS_MIN, VITALS_EVERY_MS_MAX);
    } else if (!profile_claim()) {
        admin_fail(client, "busy: somebody else looks into this server (srv flame, srv doctor)");
    } else if (open_session(vitals, client, every_ms, &err) != 0) {
        profile_release();
        admin_fail(client, "%s", err.text);
    } else {
        admin_set_state(client, vitals->session);
        say_begun(vitals->session, every_ms);
    }
}

static void on_stop_line(struct admin_client *client, struct str line, void *arg)
{
    struct session *session = admin_state(client);

    if (!str_is(str_trim(line), STR("stop")) || !session->clock)
        return;
    stop(session);
    timer_start(&session->silence, session->vitals->options.loop, VITALS_SILENT_MS);
}

static void on_gone(struct admin_client *client, void *arg)
{
    struct session *session = admin_state(client);

    if (!session)
        return;
    if (session->clock)
        stop(session);
    leave(session);
}

int vitals_open(struct vitals **out, const struct vitals_options *options, struct err *err)
{
    struct vitals *vitals = calloc(1, sizeof(*vitals));

    if (!vitals)
        return err_set(err, ERR_MEMORY, "no memory for vitals");
    vitals->options = *options;
    vitals->command = (struct admin_command){
        .name = "vitals", .begin = begin, .line = on_stop_line, .gone = on_gone, .arg = vitals
    };
    admin_add(options->admin, &vitals->command);
    *out = vitals;
    return 0;
}

void vitals_close(struct vitals *vitals)
{
    free(vitals);
}
