#include "server/profiler.h"

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
#include "server/worker.h"
#include "vm/profile.h"
#include "vm/profile_store.h"
#include "vm/profile_wait.h"

enum {
    PIECE_BYTES_MAX = 4 * 1024 * 1024,
    UNREAD_BYTES    = 1024 * 1024, /* a client that has more to read is waited for */
    UNREAD_MS       = 5,
};

/* One worker's profile on its way there and back. */
struct errand {
    struct message  begin, end, back;
    struct session *session;
    struct worker  *worker;
    struct profile *profile;
    bool            is_sampled, is_back;
};

struct session {
    struct profiler        *profiler; /* NULL: given up, only errands come back; control thread */
    struct admin_client    *client;
    struct profiler_answer *answer;
    struct timer            silence, piece;
    struct inbox           *control;
    uint64_t                began_ns, took_ns;
    unsigned                hz;
    bool                    is_over;
    unsigned                back; /* errands */
    atomic_uint             out;  /* errands not back, and one for the session itself */
    unsigned                count;
    struct errand           errands[];
};

struct profiler {
    struct admin_command    command;
    struct profiler_options options;
    struct session         *session; /* NULL: nobody profiles */
};

/* --- the end of a session --------------------------------------------------------------------------- */

/* On any thread: at the process' end, a loop drops what it has not delivered. */
static void let_go(struct session *session)
{
    if (atomic_fetch_sub(&session->out, 1) > 1)
        return;
    for (unsigned i = 0; i < session->count; i++)
        profile_close(session->errands[i].profile);
    free(session);
}

static void drop_back(struct message *message)
{
    let_go(container_of(message, struct errand, back)->session);
}

static void drop_end(struct message *message)
{
    let_go(container_of(message, struct errand, end)->session);
}

static void drop_begin(struct message *message)
{
}

/* The client has its answer, or is gone. */
static void leave(struct session *session)
{
    struct profiler *profiler = session->profiler;

    timer_stop(&session->silence, profiler->options.loop);
    timer_stop(&session->piece, profiler->options.loop);
    profiler_answer_close(session->answer);
    session->profiler = NULL;
    profiler->session = NULL;
    profile_release();
    let_go(session);
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static void say_done(struct session *session)
{
    struct buf line;

    buf_init(&line, PIECE_BYTES_MAX);
    buf_add_str(&line, STR("{\"done\":true,"));
    profiler_answer_sums(session->answer, &line);
    buf_printf(&line, ",\"seconds\":%.3f,\"hz\":%u,\"wait_ms\":%d}", (double)session->took_ns / 1e9,
               session->hz, PROFILE_WAIT_MS);
    admin_say(session->client, buf_str(&line));
    buf_fini(&line);
    admin_end(session->client);
}

static bool say_piece(struct session *session)
{
    struct buf lines;
    bool       more;

    buf_init(&lines, PIECE_BYTES_MAX);
    more = profiler_answer_next(session->answer, &lines);
    if (lines.len) { /* admin_say() adds the last line break */
        lines.len--;
        admin_say(session->client, buf_str(&lines));
    }
    buf_fini(&lines);
    return more;
}

static void on_piece(struct timer *timer)
{
    struct session *session = container_of(timer, struct session, piece);
    struct loop    *loop    = session->profiler->options.loop;

    if (admin_unread(session->client) > UNREAD_BYTES) {
        timer_start(timer, loop, UNREAD_MS);
    } else if (say_piece(session)) {
        timer_start(timer, loop, 0);
    } else {
        say_done(session);
        leave(session);
    }
}

static void answer(struct session *session)
{
    struct profile_store *stores[session->count];

    for (unsigned i = 0; i < session->count; i++)
        stores[i] = session->errands[i].is_back ? profile_seen(session->errands[i].profile) : NULL;
    timer_stop(&session->silence, session->profiler->options.loop);
    session->answer = profiler_answer_open(stores, session->count);
    if (!session->answer) {
        admin_fail(session->client, "no memory for the samples");
        leave(session);
        return;
    }
    timer_start(&session->piece, session->profiler->options.loop, 0);
}

static void on_silence(struct timer *timer)
{
    answer(container_of(timer, struct session, silence));
}

static void deliver_back(struct message *message)
{
    struct errand  *errand  = container_of(message, struct errand, back);
    struct session *session = errand->session;
    bool            waited  = session->profiler && !session->answer;

    errand->is_back = waited && errand->is_sampled;
    if (++session->back == session->count && waited)
        answer(session);
    let_go(session);
}

/* --- sampling -------------------------------------------------------------------------------------------- */

static void deliver_begin(struct message *message)
{
    struct errand *errand = container_of(message, struct errand, begin);

    profile_begin(errand->profile, worker_sched(errand->worker));
    errand->is_sampled = profile_tick(errand->profile, errand->session->hz);
}

static void deliver_end(struct message *message)
{
    struct errand *errand = container_of(message, struct errand, end);

    profile_end(errand->profile);
    inbox_post(errand->session->control, &errand->back);
}

/* Samples end. The profiles come back, whether or not somebody wants to read them. */
static void stop(struct session *session)
{
    session->is_over = true;
    session->took_ns = clock_mono_ns() - session->began_ns;
    for (unsigned i = 0; i < session->count; i++)
        inbox_post(loop_inbox(worker_loop(session->errands[i].worker)), &session->errands[i].end);
}

static int fill_errands(struct session *session, struct worker **workers, struct err *err)
{
    int rc = 0;

    for (unsigned i = 0; i < session->count && rc == 0; i++) {
        struct errand *errand = &session->errands[i];

        errand->session = session;
        errand->worker  = workers[i];
        errand->begin   = (struct message){ .deliver = deliver_begin, .drop = drop_begin };
        errand->end     = (struct message){ .deliver = deliver_end, .drop = drop_end };
        errand->back    = (struct message){ .deliver = deliver_back, .drop = drop_back };
        rc              = profile_open(&errand->profile, err);
    }
    return rc;
}

static int open_session(struct profiler *profiler, unsigned hz, struct err *err)
{
    unsigned        count   = profiler->options.worker_count;
    struct session *session = calloc(1, sizeof(*session) + count * sizeof(session->errands[0]));
    int             rc;

    if (!session)
        return err_set(err, ERR_MEMORY, "no memory for a profile");
    session->profiler = profiler;
    session->control  = loop_inbox(profiler->options.loop);
    session->hz       = hz;
    session->count    = count;
    session->began_ns = clock_mono_ns();
    atomic_init(&session->out, 1);
    timer_init(&session->silence, on_silence);
    timer_init(&session->piece, on_piece);
    rc = fill_errands(session, profiler->options.workers, err);
    if (rc != 0) {
        let_go(session);
        return rc;
    }
    atomic_store(&session->out, count + 1);
    for (unsigned i = 0; i < count; i++)
        inbox_post(loop_inbox(worker_loop(session->errands[i].worker)), &session->errands[i].begin);
    profiler->session = session;
    return 0;
}

/* --- the command ------------------------------------------------------------------------------------------- */

static bool read_hz(struct str args, unsigned *hz)
{
    uint64_t value;

    *hz = PROFILER_HZ_MAX;
    if (!args.len)
        return true;
    if (!str_to_u64(args, PROFILER_HZ_MAX, &value) || value < 1)
        return false;
    *hz = (unsigned)value;
    return true;
}

static void say_begun(const struct session *session)
{
    struct buf line;

    buf_init(&line, PIECE_BYTES_MAX);
    buf_printf(&line, "{\"profiling\":true,\"hz\":%u,\"workers\":%u}", session->hz, session->count);
    admin_say(session->client, buf_str(&line));
    buf_fini(&line);
}

static void begin(struct admin_client *client, struct str args, void *arg)
{
    struct profiler *profiler = arg;
    struct err       err      = { 0 };
    unsigned         hz;

    if (!read_hz(args, &hz)) {
        admin_fail(client, "profile takes a number of samples a second, 1 to %d", PROFILER_HZ_MAX);
    } else if (!profile_claim()) {
        admin_fail(client, "busy: somebody else profiles this server (srv flame, srv doctor)");
    } else if (open_session(profiler, hz, &err) != 0) {
        profile_release();
        admin_fail(client, "%s", err.text);
    } else {
        profiler->session->client = client;
        admin_set_state(client, profiler->session);
        say_begun(profiler->session);
    }
}

static void on_line(struct admin_client *client, struct str line, void *arg)
{
    struct session *session = admin_state(client);

    if (!str_is(str_trim(line), STR("stop")) || session->is_over)
        return;
    stop(session);
    timer_start(&session->silence, session->profiler->options.loop, PROFILER_SILENT_MS);
}

static void on_gone(struct admin_client *client, void *arg)
{
    struct session *session = admin_state(client);

    if (!session)
        return;
    if (!session->is_over)
        stop(session);
    leave(session);
}

int profiler_open(struct profiler **out, const struct profiler_options *options, struct err *err)
{
    struct profiler *profiler = calloc(1, sizeof(*profiler));

    if (!profiler)
        return err_set(err, ERR_MEMORY, "no memory for the profiler");
    profiler->options = *options;
    profiler->command = (struct admin_command){
        .name = "profile", .begin = begin, .line = on_line, .gone = on_gone, .arg = profiler
    };
    admin_add(options->admin, &profiler->command);
    *out = profiler;
    return 0;
}

void profiler_close(struct profiler *profiler)
{
    free(profiler);
}
