#include "base/log.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log_line.h"
#include "base/log_ring.h"
#include "base/log_sink.h"
#include "base/text.h"

enum {
    RINGS_MAX         = 512,       /* threads that log at once */
    SHARED            = 0,         /* index of the ring of threads that have none */
    SHARED_RING_BYTES = 64 * 1024, /* holds two records of any size */
    NAP_MS_MIN        = 10,        /* the log's thread looks this often while lines come; having */
    NAP_MS_MAX        = 160,       /* found nothing for a while, it sleeps until it is woken */
    HURRY_WAIT_MS     = 200,
};

struct log {
    /* Set once. */
    bool  pretty, colours, threadless;
    int   pid;
    char *hostname; /* owned, may be NULL */

    /* Any thread. */
    atomic_bool                reopen_wanted;
    atomic_bool                closing;
    atomic_bool                asleep;    /* the thread waits for `wake` and looks at no ring */
    atomic_bool                is_pushed; /* a ring that fills has posted `wake` for this round */
    sem_t                      wake;
    _Atomic(struct log_ring *) rings[RINGS_MAX]; /* owned; NULL: a free place */
    pthread_mutex_t            shared_lock;      /* held by the producer of the shared ring */

    /* Behind `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t  changed;   /* rounds or ended */
    uint64_t        rounds;    /* of looking at all rings, finished */
    bool            ended;     /* the thread is about to return */
    bool            abandoned; /* log_close() did not wait: the thread frees this */

    /* The thread's own (threadless: of whoever holds shared_lock). */
    pthread_t       thread;
    struct log_sink sink;
    uint64_t        untold; /* dropped or lost lines that no line has told of */
};

/* The log is not passed about (log.h), so these say which it is and what it wants to hear. */
static _Atomic(struct log *) current_log;
static atomic_int            current_level = LOG_WARN;

static _Thread_local struct log_ring *own_ring;

/* --- making text: on the log's thread --------------------------------------------------------- */

static void flush_sink(struct log *log)
{
    log->untold += log_sink_flush(&log->sink);
}

static void add_text(struct log *log, const struct log_record *record, struct str payload)
{
    struct buf *out    = &log->sink.text;
    size_t      before = out->len;

    if (log->pretty) {
        log_line_open_pretty(out, record->wall_ms, log->colours);
        record->kind->pretty(out, payload.at, payload.len, log->colours);
        buf_add_byte(out, '\n');
    } else {
        log_line_open_json(out, record->level, record->wall_ms, log->pid, log->hostname);
        record->kind->json(out, payload.at, payload.len);
        buf_add_str(out, STR("}\n"));
    }
    if (out->failed) { /* no memory: this line is lost, those before it are not */
        out->len    = before;
        out->failed = false;
        log->untold++;
    }
}

/* A line of the log's own, past the rings. */
static void add_own_line(struct log *log, enum log_level level, const char *message, struct str key,
                         struct str json)
{
    struct log_record record = { .level   = (uint16_t)level,
                                 .wall_ms = clock_wall_ms(),
                                 .kind    = &LOG_LINE_KIND };
    struct log_line   line;

    log_line_begin(&line, level, str_of(message));
    log_line_json(&line, key, json);
    if (line.payload.len)
        add_text(log, &record, buf_str(&line.payload));
    buf_fini(&line.payload);
}

static bool drain_ring(struct log *log, struct log_ring *ring)
{
    const struct log_record *record;
    uint64_t                 dropped;
    bool                     found = false;

    while ((record = log_ring_peek(ring))) {
        add_text(log, record, str_make(log_record_payload(record), record->len));
        log_ring_release(ring, record);
        if (log->sink.text.len >= LOG_SINK_BATCH_BYTES)
            flush_sink(log);
        found = true;
    }
    dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
    log->untold += dropped - ring->dropped_told;
    ring->dropped_told = dropped;
    return found;
}

/* Only after something has been written: a disk that is full stays so for a while, and a line that
 * tells of lost ones would be lost too. */
static void tell_losses(struct log *log)
{
    uint64_t untold = log->untold;
    char     digits[24];
    int      len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)untold);

    add_own_line(log, LOG_WARN, "log lines dropped", STR("dropped"), str_make(digits, (size_t)len));
    log->untold = log_sink_flush(&log->sink) ? untold : 0;
}

static void reopen_sink(struct log *log)
{
    struct err err;
    struct buf json;

    if (!atomic_exchange(&log->reopen_wanted, false))
        return;
    flush_sink(log);
    if (log_sink_reopen(&log->sink, &err) == 0)
        return;
    dprintf(STDERR_FILENO, "srv: %s; the old file goes on\n", err.text);
    buf_init(&json, 4 * sizeof(err.text));
    text_json(&json, str_of(err.text));
    add_own_line(log, LOG_ERROR, "log file not reopened", STR("err"), buf_str(&json));
    buf_fini(&json);
}

/* Looks at all rings once and writes what was there. True: there was something. */
static bool do_round(struct log *log)
{
    bool     found = false;
    uint64_t lost_before;

    reopen_sink(log);
    for (unsigned i = 0; i < RINGS_MAX; i++) {
        struct log_ring *ring = atomic_load(&log->rings[i]);
        /* Asked before the look, so that nothing can come after the last one. */
        bool closed = ring && atomic_load(&ring->closed);

        if (ring && drain_ring(log, ring))
            found = true;
        if (closed) {
            atomic_store(&log->rings[i], NULL);
            log_ring_free(ring);
        }
    }
    lost_before = log->untold;
    flush_sink(log);
    if (found && log->untold && log->untold == lost_before)
        tell_losses(log);
    return found;
}

/* --- the log's thread --------------------------------------------------------------------------- */

static bool has_work(struct log *log)
{
    for (unsigned i = 0; i < RINGS_MAX; i++) {
        struct log_ring *ring = atomic_load(&log->rings[i]);

        if (ring && !log_ring_is_empty(ring))
            return true;
    }
    return false;
}

static struct timespec after_ms(unsigned ms)
{
    uint64_t ns = clock_mono_ns() + (uint64_t)ms * NS_PER_MS;

    return (struct timespec){ .tv_sec  = (time_t)(ns / (1000ull * NS_PER_MS)),
                              .tv_nsec = (long)(ns % (1000ull * NS_PER_MS)) };
}

/* Short naps while there is something to do, so that a busy producer need never wake anybody: a
 * wake-up costs it more than the record does. */
static void rest(struct log *log, unsigned nap_ms)
{
    struct timespec until = after_ms(nap_ms);

    if (nap_ms <= NAP_MS_MAX) {
        sem_clockwait(&log->wake, CLOCK_MONOTONIC, &until);
    } else {
        /* Producers look at `asleep` after they have moved their head, this looks at their heads
         * after it has set `asleep`: one of both sees the other. */
        atomic_store(&log->asleep, true);
        if (!has_work(log))
            sem_wait(&log->wake);
        atomic_store(&log->asleep, false);
    }
    while (sem_trywait(&log->wake) == 0) {
    }
    atomic_store(&log->is_pushed, false);
}

static void free_log(struct log *log)
{
    for (unsigned i = 0; i < RINGS_MAX; i++)
        log_ring_free(atomic_load(&log->rings[i]));
    log_sink_close(&log->sink);
    pthread_mutex_destroy(&log->shared_lock);
    pthread_mutex_destroy(&log->lock);
    pthread_cond_destroy(&log->changed);
    sem_destroy(&log->wake);
    free(log->hostname);
    free(log);
}

static void end_round(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    log->rounds++;
    pthread_cond_broadcast(&log->changed);
    pthread_mutex_unlock(&log->lock);
}

static void end_thread(struct log *log)
{
    bool is_ours;

    pthread_mutex_lock(&log->lock);
    log->ended = true;
    is_ours    = log->abandoned;
    pthread_cond_broadcast(&log->changed);
    pthread_mutex_unlock(&log->lock);
    if (is_ours)
        free_log(log);
}

static void *run_thread(void *arg)
{
    struct log *log    = arg;
    unsigned    nap_ms = NAP_MS_MIN;

    for (;;) {
        bool closing = atomic_load(&log->closing); /* asked before the last look */

        nap_ms = do_round(log) ? NAP_MS_MIN : nap_ms * 2;
        end_round(log);
        if (closing)
            break;
        rest(log, nap_ms);
        if (nap_ms > NAP_MS_MAX)
            nap_ms = NAP_MS_MIN;
    }
    end_thread(log);
    return NULL;
}

/* Signals are other threads' business: EPIPE is enough for us. */
static int start_thread(struct log *log, struct err *err)
{
    sigset_t all, before;
    int      rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&log->thread, NULL, run_thread, log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return err_set(err, ERR_SYSTEM, "log: no thread: %s", strerror(rc));
    pthread_setname_np(log->thread, "srv-log");
    return 0;
}

/* --- open and close ------------------------------------------------------------------------------- */

static void choose_format(struct log *log, const struct log_options *options)
{
    bool terminal = isatty(log->sink.fd);

    log->pretty  = options->format == LOG_PRETTY || (options->format == LOG_AUTO && terminal);
    log->colours = terminal && !getenv("NO_COLOR");
}

static void init_locks(struct log *log)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&log->lock, NULL);
    pthread_mutex_init(&log->shared_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&log->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sem_init(&log->wake, 0, 0);
}

int log_open(struct log **out, const struct log_options *options, struct err *err)
{
    struct log *log = calloc(1, sizeof(*log));
    int         rc;

    assert(!atomic_load(&current_log));
    if (!log)
        return err_set(err, ERR_MEMORY, "log: no memory");
    rc = log_sink_open(&log->sink, options->path, options->fd, err);
    if (rc < 0) {
        free(log);
        return rc;
    }
    init_locks(log);
    choose_format(log, options);
    log->threadless = options->threadless;
    log->pid        = (int)getpid();
    log->hostname   = options->hostname ? strdup(options->hostname) : NULL;
    atomic_store(&log->rings[SHARED], log_ring_new(SHARED_RING_BYTES));
    if (!atomic_load(&log->rings[SHARED]))
        rc = err_set(err, ERR_MEMORY, "log: no memory");
    else if (!log->threadless)
        rc = start_thread(log, err);
    if (rc < 0) {
        free_log(log);
        return rc;
    }
    atomic_store(&current_log, log);
    log_set_level(log, options->level);
    *out = log;
    return 0;
}

/* True: the thread has ended within MS. */
static bool wait_for_end(struct log *log, unsigned ms)
{
    struct timespec until = after_ms(ms);
    bool            ended;

    pthread_mutex_lock(&log->lock);
    while (!log->ended && pthread_cond_timedwait(&log->changed, &log->lock, &until) == 0) {
    }
    ended = log->ended;
    pthread_mutex_unlock(&log->lock);
    return ended;
}

/* The thread hangs in a write(2) that nobody takes. It may come back after we have gone. */
static bool abandon(struct log *log)
{
    bool ended;

    pthread_mutex_lock(&log->lock);
    ended          = log->ended;
    log->abandoned = !ended;
    if (!ended)
        pthread_detach(log->thread);
    pthread_mutex_unlock(&log->lock);
    return !ended;
}

void log_close(struct log *log)
{
    if (!log)
        return;
    log_detach();
    atomic_store(&current_log, NULL);
    atomic_store(&current_level, LOG_WARN);
    if (!log->threadless) {
        atomic_store(&log->closing, true);
        sem_post(&log->wake);
        if (!wait_for_end(log, LOG_CLOSE_WAIT_MS)) {
            atomic_store(&log->sink.hurry, true);
            if (!wait_for_end(log, HURRY_WAIT_MS) && abandon(log))
                return;
        }
        pthread_join(log->thread, NULL);
    }
    free_log(log);
}

void log_reopen(struct log *log)
{
    atomic_store(&log->reopen_wanted, true);
    sem_post(&log->wake);
}

void log_set_level(struct log *log, enum log_level level)
{
    (void)log;
    atomic_store(&current_level, level);
}

bool log_flush(struct log *log, unsigned timeout_ms)
{
    struct timespec until = after_ms(timeout_ms);
    uint64_t        wanted;
    bool            done;

    if (log->threadless)
        return true;
    pthread_mutex_lock(&log->lock);
    wanted = log->rounds + 2; /* the one under way may have passed our ring already */
    do {
        sem_post(&log->wake);
        done = log->rounds >= wanted;
    } while (!done && pthread_cond_timedwait(&log->changed, &log->lock, &until) == 0);
    pthread_mutex_unlock(&log->lock);
    return done;
}

/* --- producers -------------------------------------------------------------------------------------- */

void log_attach(struct log *log)
{
    struct log_ring *ring = log_ring_new(LOG_RING_BYTES);

    assert(!own_ring);
    if (!ring)
        return;
    for (unsigned i = SHARED + 1; i < RINGS_MAX; i++) {
        struct log_ring *none = NULL;

        if (atomic_compare_exchange_strong(&log->rings[i], &none, ring)) {
            own_ring = ring;
            return;
        }
    }
    log_ring_free(ring);
}

void log_detach(void)
{
    if (own_ring)
        atomic_store(&own_ring->closed, true);
    own_ring = NULL;
}

void *log_reserve(const struct log_kind *kind, enum log_level level, int64_t wall_ms, size_t len)
{
    struct log        *log  = atomic_load_explicit(&current_log, memory_order_acquire);
    struct log_ring   *ring = own_ring;
    struct log_record *record;

    assert(len <= LOG_PAYLOAD_MAX);
    if (unlikely(!log))
        return NULL;
    if (!ring) {
        pthread_mutex_lock(&log->shared_lock);
        ring = atomic_load(&log->rings[SHARED]);
    }
    record = log_ring_reserve(ring, len);
    if (!record) {
        if (!own_ring)
            pthread_mutex_unlock(&log->shared_lock);
        return NULL;
    }
    record->level   = (uint16_t)level;
    record->kind    = kind;
    record->wall_ms = wall_ms;
    return log_record_payload(record);
}

void log_commit(void)
{
    struct log      *log  = atomic_load_explicit(&current_log, memory_order_acquire);
    struct log_ring *ring = own_ring ? own_ring : atomic_load(&log->rings[SHARED]);
    bool             full = log_ring_commit(ring);

    if (unlikely(log->threadless))
        do_round(log);
    if (!own_ring)
        pthread_mutex_unlock(&log->shared_lock);
    if (unlikely(full) && !atomic_load(&log->is_pushed) && !atomic_exchange(&log->is_pushed, true))
        sem_post(&log->wake);
    if (unlikely(atomic_load(&log->asleep)) && atomic_exchange(&log->asleep, false))
        sem_post(&log->wake);
}

/* --- lines -------------------------------------------------------------------------------------------- */

bool log_wants(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* There is no log: whoever started us reads standard error. */
static void write_to_stderr(struct str payload)
{
    struct buf out;

    buf_init(&out, LOG_SINK_BUF_MAX);
    buf_add_str(&out, STR("srv: "));
    LOG_LINE_KIND.pretty(&out, payload.at, payload.len, false);
    buf_add_byte(&out, '\n');
    if (write(STDERR_FILENO, out.at, out.len) < 0) {
        /* Nobody is left to tell. */
    }
    buf_fini(&out);
}

void log_line_end(struct log_line *line)
{
    struct str payload = buf_str(&line->payload);

    if (payload.len && log_wants(line->level)) {
        void *to = log_reserve(&LOG_LINE_KIND, line->level, clock_wall_ms(), payload.len);

        if (to) {
            memcpy(to, payload.at, payload.len);
            log_commit();
        } else if (!atomic_load(&current_log)) {
            write_to_stderr(payload);
        }
    }
    buf_fini(&line->payload);
}

void log_write(enum log_level level, const char *message, const char *fields, ...)
{
    struct log_line line;
    struct log_args args;

    log_line_begin(&line, level, str_of(message));
    va_start(args.list, fields);
    log_line_format(&line, fields, &args);
    va_end(args.list);
    log_line_end(&line);
}

/* --- names -------------------------------------------------------------------------------------------- */

static const struct {
    struct str     name;
    enum log_level level;
} LEVELS[] = {
    { STR_INIT("trace"), LOG_TRACE }, { STR_INIT("debug"), LOG_DEBUG },
    { STR_INIT("info"), LOG_INFO },   { STR_INIT("warn"), LOG_WARN },
    { STR_INIT("error"), LOG_ERROR }, { STR_INIT("fatal"), LOG_FATAL },
    { STR_INIT("off"), LOG_OFF },
};

bool log_level_of_name(struct str name, enum log_level *level)
{
    for (size_t i = 0; i < ARRAY_LEN(LEVELS); i++) {
        if (str_is(LEVELS[i].name, name)) {
            *level = LEVELS[i].level;
            return true;
        }
    }
    return false;
}

const char *log_level_name(enum log_level level)
{
    for (size_t i = 0; i < ARRAY_LEN(LEVELS); i++)
        if (LEVELS[i].level == level)
            return LEVELS[i].name.at;
    return "unknown";
}

bool log_format_of_name(struct str name, enum log_format *format)
{
    static const struct str names[] = { STR_INIT("auto"), STR_INIT("json"), STR_INIT("pretty") };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_is(names[i], name)) {
            *format = (enum log_format)i;
            return true;
        }
    }
    return false;
}
