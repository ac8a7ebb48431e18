#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bind/chunks.h"
#include "bind/lend.h"
#include "ev/fswatch.h"
#include "ev/inbox.h"
#include "ev/loop.h"
#include "ev/thread.h"
#include "ev/timer.h"
#include "net/listener.h"
#include "server/access_log.h"
#include "server/admin.h"
#include "server/admin_about.h"
#include "server/admin_eval.h"
#include "server/adoption.h"
#include "server/config.h"
#include "server/crash.h"
#include "server/edits.h"
#include "server/handover.h"
#include "server/profiler.h"
#include "server/reload.h"
#include "server/sockets.h"
#include "server/supervisor.h"
#include "server/tls_certs.h"
#include "server/vitals.h"
#include "server/watchdog.h"
#include "server/worker.h"
#include "server/worker_tls.h"
#include "server/worker_watched.h"
#include "vm/profile.h"

enum {
    LOAD_SLOW_MS   = 2000, /* then the log says which worker a reload waits for */
    DRAIN_GRACE_MS = 2000, /* beyond drain_timeout, for workers to say that they are done */
    STUCK_MS       = 1000, /* a worker whose turn lasts longer at the end is not waited for */
};

enum server_state {
    SERVER_STARTING, /* the first generation loads */
    SERVER_SERVING,
    SERVER_DRAINING, /* a signal came: answers what it has */
    SERVER_ENDED,
};

struct server {
    struct config          *config;
    struct supervisor_link *link;
    enum server_state       state;
    int                     exit_status;

    struct loop *loop; /* control: signals, reports, edits */
    struct log  *log;
    struct lend  lend;

    struct worker_shared shared;  /* lent to each worker */
    unsigned             started; /* workers whose thread runs */
    unsigned             drained;

    struct sockets     sockets;
    struct reload      reload;
    metric_cell       *reloads, *reloads_refused;
    struct timer       load_slow; /* runs while a worker has been asked to load */
    struct fswatch    *edits;     /* NULL: not watched */
    struct watchdog   *watchdog;
    struct adoption    adoption; /* the watchdog's */
    struct admin      *admin;    /* NULL: none was to be had, or wanted */
    struct admin_about about;
    struct admin_eval  eval;
    struct profiler   *profiler;
    struct vitals     *vitals;
    struct io          signals;
    int                signal_fd;
    struct timer       drain_limit;
};

/* --- saying things ----------------------------------------------------------------------------- */

static int fail(struct server *s, const char *text)
{
    if (s->state == SERVER_STARTING)
        fprintf(stderr, "srv: %s\n", text);
    else
        log_error("server", "reason=%s", text);
    return 1;
}

static const char *scheme(const struct server *s)
{
    return s->shared.certs ? "https://" : "http://";
}

static void announce(const struct server *s)
{
    char text[ADDR_TEXT_BYTES];

    addr_format(sockets_addr(&s->sockets, DOOR_APP), text);
    printf("listening on %s%s\n", *s->config->unix_path ? "" : scheme(s), text);
    if (sockets_has(&s->sockets, DOOR_REDIRECT))
        printf("http://%s redirects there\n",
               addr_format(sockets_addr(&s->sockets, DOOR_REDIRECT), text));
    fflush(stdout);
}

/* --- reload ------------------------------------------------------------------------------------ */

/* A worker in a long slice does not even begin: whoever waits for an edit should know why. */
static void on_load_slow(struct timer *timer)
{
    struct server *s = container_of(timer, struct server, load_slow);

    if (s->state == SERVER_STARTING)
        log_warn("the start waits for the app to load", "worker=%u", s->reload.asked - 1);
    else
        log_warn("the reload waits for a worker", "generation=%u worker=%u", s->reload.loading,
                 s->reload.asked - 1);
    timer_start(timer, s->loop, LOAD_SLOW_MS);
}

static void ask_to_load(unsigned worker, unsigned version, void *arg)
{
    struct server *s = arg;

    timer_start(&s->load_slow, s->loop, LOAD_SLOW_MS);
    worker_load(s->shared.workers[worker], version);
}

static void ask_to_discard(unsigned worker, unsigned version, void *arg)
{
    struct server *s = arg;

    worker_discard(s->shared.workers[worker], version);
}

/* WORKER polls the sockets of SLOT. */
static void listen_at(struct server *s, unsigned worker, unsigned slot)
{
    for (int door = 0; door < DOORS; door++)
        if (sockets_has(&s->sockets, door))
            worker_listen(s->shared.workers[worker], door, sockets_fd(&s->sockets, door, slot));
}

static void unlisten_at(struct server *s, unsigned worker, unsigned slot)
{
    for (int door = 0; door < DOORS; door++)
        if (sockets_has(&s->sockets, door))
            worker_unlisten(s->shared.workers[worker], door, sockets_fd(&s->sockets, door, slot));
}

static void begin_serving(struct server *s)
{
    s->state = SERVER_SERVING;
    for (unsigned i = 0; i < s->shared.worker_count; i++)
        listen_at(s, i, i);
    supervisor_ready(s->link);
    announce(s);
}

static void commit(unsigned version, void *arg)
{
    struct server *s = arg;

    timer_stop(&s->load_slow, s->loop);
    for (unsigned i = 0; i < s->shared.worker_count; i++)
        worker_switch(s->shared.workers[i], version);
    if (s->state == SERVER_STARTING) {
        begin_serving(s);
        return;
    }
    metric_add(s->reloads, 1);
    log_info("app reloaded", "generation=%u", version);
}

static void refuse(unsigned version, const char *why, void *arg)
{
    struct server *s = arg;

    timer_stop(&s->load_slow, s->loop);
    if (s->state == SERVER_STARTING) {
        fail(s, why);
        s->exit_status = 1;
        loop_break(s->loop);
        return;
    }
    metric_add(s->reloads_refused, 1);
    log_error("app not reloaded, the old one goes on", "generation=%u error=%s", version, why);
}

static const struct reload_ops RELOAD_OPS = {
    .load    = ask_to_load,
    .discard = ask_to_discard,
    .commit  = commit,
    .refused = refuse,
};

/* Sockets, threads and limits are made of it at the start; a reload is of the app alone. */
static void warn_of_settings(const struct server *s, const struct fswatch_changes *changes)
{
    for (unsigned i = 0; i < changes->count; i++)
        if (strcmp(changes->paths[i] + strlen(s->config->app_root), "/config.lua") == 0)
            log_warn("config.lua has changed, its settings hold from the next start on");
}

static bool is_edit(const char *path, bool is_folder, void *arg)
{
    struct server *s     = arg;
    struct edits   edits = { s->config->app_root, s->shared.chunks, s->lend.sources };

    return edits_has(&edits, path, is_folder);
}

static void on_edit(const struct fswatch_changes *changes, void *arg)
{
    struct server *s = arg;

    if (s->state != SERVER_SERVING)
        return;
    warn_of_settings(s, changes);
    log_debug("files changed", "count=%u first=%s", changes->count,
              changes->count ? changes->paths[0] : "");
    reload_begin(&s->reload);
}

/* --- late workers; on the watchdog's thread ------------------------------------------------------ */

/* A Unix path has one socket for all slots. */
static bool polls_it_anyway(const struct server *s, unsigned worker, unsigned slot)
{
    return sockets_fd(&s->sockets, DOOR_APP, worker) == sockets_fd(&s->sockets, DOOR_APP, slot);
}

static void ask_to_adopt(unsigned worker, unsigned slot, void *arg)
{
    struct server *s = arg;

    if (!polls_it_anyway(s, worker, slot))
        listen_at(s, worker, slot);
}

static void ask_to_give_back(unsigned worker, unsigned slot, void *arg)
{
    struct server *s = arg;

    if (!polls_it_anyway(s, worker, slot))
        unlisten_at(s, worker, slot);
}

static const struct adoption_ops ADOPTION_OPS = { ask_to_adopt, ask_to_give_back };

static void on_late(unsigned slot, void *arg)
{
    struct server *s = arg;

    adoption_late(&s->adoption, slot);
}

static void on_back(unsigned slot, uint64_t busy_ms, void *arg)
{
    struct server *s = arg;

    adoption_back(&s->adoption, slot);
    log_debug("worker was late", "worker=%u busy_ms=%llu", slot, (unsigned long long)busy_ms);
}

static void on_slow(unsigned slot, uint64_t slice_ms, void *arg)
{
    struct server *s = arg;
    char           label[WORKER_LABEL_BYTES];

    worker_watched_ask(s->shared.workers[slot], label);
    log_warn("slice too long, the loop waits", "worker=%u route=%s took_ms=%llu so_far=true", slot,
             label, (unsigned long long)slice_ms);
}

static void on_over(unsigned slot, uint64_t slice, uint64_t slice_ms, void *arg)
{
    struct server *s = arg;

    worker_watched_stop_slice(s->shared.workers[slot], slice, slice_ms);
}

/* Code in C, or compiled by a LuaJIT that looks at no hook in it: the signals go on. */
static void on_unstopped(unsigned slot, uint64_t slice_ms, void *arg)
{
    struct server *s = arg;
    char           label[WORKER_LABEL_BYTES];

    worker_watched_ask(s->shared.workers[slot], label);
    log_error("slice cannot be stopped yet", "worker=%u route=%s took_ms=%llu", slot, label,
              (unsigned long long)slice_ms);
}

static const struct watchdog_ops WATCHDOG_OPS = { on_late, on_back, on_slow, on_over,
                                                  on_unstopped };

static int open_watchdog(struct server *s, struct err *err)
{
    struct watched         watched[CONFIG_WORKERS_MAX];
    struct watchdog_limits limits = { s->config->slice_warn_ms, s->config->slice_limit_ms };

    adoption_init(&s->adoption, s->shared.worker_count, &ADOPTION_OPS, s);
    for (unsigned i = 0; i < s->shared.worker_count; i++)
        watched[i] = (struct watched){ worker_loop(s->shared.workers[i]),
                                       worker_sched(s->shared.workers[i]) };
    return watchdog_open(&s->watchdog, watched, s->shared.worker_count, &limits, &WATCHDOG_OPS, s,
                         err);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void end(struct server *s)
{
    s->state = SERVER_ENDED;
    loop_break(s->loop);
}

static void on_drain_limit(struct timer *timer)
{
    struct server *s = container_of(timer, struct server, drain_limit);

    log_warn("drain timeout passed", "drained=%u of=%u", s->drained, s->shared.worker_count);
    end(s);
}

static void begin_drain(struct server *s)
{
    s->state = SERVER_DRAINING;
    log_info("draining", "timeout_ms=%llu", (unsigned long long)s->config->drain_timeout_ms);
    fswatch_close(s->edits);
    s->edits = NULL;
    for (unsigned i = 0; i < s->shared.worker_count; i++)
        worker_drain(s->shared.workers[i]);
    timer_start(&s->drain_limit, s->loop, s->config->drain_timeout_ms + DRAIN_GRACE_MS);
}

static void on_end_signal(struct server *s, int number)
{
    switch (s->state) {
    case SERVER_SERVING: begin_drain(s); return;
    case SERVER_DRAINING:
        /* Asked twice: whoever asks does not want to wait. A service manager signals supervisor
         * and server alike, though, and the supervisor passes its own on: it alone counts then. */
        if (s->link->control_fd < 0)
            _exit(128 + number);
        return;
    default: end(s); return;
    }
}

static void on_reload_signal(struct server *s)
{
    if (s->state != SERVER_SERVING)
        return;
    if (s->shared.certs)
        tls_certs_reload(s->shared.certs);
    reload_begin(&s->reload);
}

static void on_signal(int fd, short what, void *arg)
{
    struct server          *s = arg;
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGUSR1: log_reopen(s->log); break;
        case SIGHUP: on_reload_signal(s); break;
        default: on_end_signal(s, (int)info.ssi_signo); break;
        }
    }
}

/* --- what workers say ---------------------------------------------------------------------------- */

static void on_report(const struct worker_report *report, void *arg)
{
    struct server *s = arg;

    switch (report->kind) {
    case REPORT_LOADED: reload_loaded(&s->reload, report->worker, report->version); return;
    case REPORT_FAILED:
        reload_failed(&s->reload, report->worker, report->version, report->text);
        return;
    case REPORT_DRAINED:
        if (++s->drained == s->shared.worker_count)
            end(s);
        return;
    }
}

/* --- opening, in order; closing goes backwards ----------------------------------------------------- */

static int open_log(struct server *s, struct err *err)
{
    const struct config *config  = s->config;
    struct log_options   options = { .fd = STDOUT_FILENO };

    options.path = *config->log_file ? config->log_file : NULL;
    log_level_of_name(str_of(config->log_level), &options.level);
    log_format_of_name(str_of(config->log_format), &options.format);
    if (config->dev && options.format == LOG_AUTO)
        options.format = LOG_PRETTY;
    return log_open(&s->log, &options, err);
}

static int open_signals(struct server *s, struct err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGHUP);
    /* Ctrl-C goes to the whole group; with a supervisor it is the supervisor's to pass on. */
    if (s->link->control_fd < 0)
        sigaddset(&set, SIGINT);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0)
        return err_set_errno(err, "signalfd");
    return io_start_level(&s->signals, s->loop, s->signal_fd, on_signal, s);
}

/* The usual soft limit of 1,024 is for programs that use select(); connections need more. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int count_reloads(struct server *s, struct err *err)
{
    static const struct str LABELS[] = { STR_INIT("result") };
    struct metric_spec      spec     = { .kind        = METRIC_COUNTER,
                                         .name        = STR("srv_reloads_total"),
                                         .help        = STR("Versions of the app after the first."),
                                         .labels      = LABELS,
                                         .label_count = 1 };
    struct metrics_shard   *shard    = metrics_shard_open(s->lend.metrics);
    struct metric          *metric   = metrics_define(s->lend.metrics, &spec, err);

    if (shard && metric) {
        s->reloads         = metrics_series(shard, metric, (struct str[]){ STR("loaded") });
        s->reloads_refused = metrics_series(shard, metric, (struct str[]){ STR("refused") });
    }
    if (s->reloads && s->reloads_refused)
        return 0;
    return err_set(err, ERR_MEMORY, "no memory for metrics");
}

static int open_shared(struct server *s, struct err *err)
{
    int rc;

    raise_descriptor_limit();
    thread_block_signals();
    signal(SIGPIPE, SIG_IGN);
    worker_watched_take_signals();
    profile_take_signals();
    crash_watch(s->link->last_words);
    rc = sockets_open(&s->sockets, s->config, s->shared.worker_count, s->link, err);
    if (rc == 0)
        rc = tls_certs_open(&s->shared.certs, s->config, s->link, err);
    if (rc == 0)
        rc = handover(s->config, s->link, err);
    if (rc == 0)
        rc = open_log(s, err);
    if (rc == 0)
        rc = loop_open(&s->loop, err);
    if (rc == 0)
        rc = open_signals(s, err);
    if (rc == 0)
        rc = lend_open(&s->lend, err);
    if (rc == 0)
        rc = count_reloads(s, err);
    if (rc == 0)
        rc = chunks_open(&s->shared.chunks, err);
    return rc;
}

static int start_workers(struct server *s, struct err *err)
{
    struct worker_shared *shared = &s->shared;
    int                   rc     = 0;

    shared->log     = s->log;
    shared->lend    = &s->lend;
    shared->control = loop_inbox(s->loop);
    shared->port    = *s->config->unix_path ? 0 : sockets_addr(&s->sockets, DOOR_APP)->port;
    shared->workers = calloc(shared->worker_count, sizeof(struct worker *));
    if (!shared->workers)
        return err_set(err, ERR_MEMORY, "no memory for %u workers", shared->worker_count);
    while (rc == 0 && s->started < shared->worker_count) {
        rc = worker_start(&shared->workers[s->started], shared, s->started, err);
        s->started += rc == 0;
    }
    return rc;
}

/* An app that cannot be watched (too many files) is still served. */
static void watch_edits(struct server *s)
{
    struct err err = { 0 };

    if (!s->config->watch)
        return;
    if (fswatch_open(&s->edits, s->loop, s->config->app_root, on_edit, s, &err) != 0)
        log_warn("edits are not seen", "reason=%s", err.text);
    else
        fswatch_pick(s->edits, is_edit);
}

static void on_new_certs(struct tls_files *files, void *arg)
{
    struct server *s = arg;

    for (unsigned i = 0; i < s->shared.worker_count; i++)
        worker_tls_send(s->shared.workers[i], files);
}

/* Whoever looks into a server knows the process that was started, which is the supervisor. */
static pid_t public_pid(const struct server *s)
{
    return s->link->control_fd < 0 ? getpid() : s->link->supervisor;
}

static void open_profiler(struct server *s)
{
    struct profiler_options options = { .loop         = s->loop,
                                        .admin        = s->admin,
                                        .workers      = s->shared.workers,
                                        .worker_count = s->shared.worker_count };
    struct err              err     = { 0 };

    if (profiler_open(&s->profiler, &options, &err) != 0)
        log_warn("no profiler", "reason=%s", err.text);
}

static void open_vitals(struct server *s)
{
    struct vitals_options options = { .loop         = s->loop,
                                      .admin        = s->admin,
                                      .workers      = s->shared.workers,
                                      .worker_count = s->shared.worker_count,
                                      .sockets      = &s->sockets,
                                      .lend         = &s->lend };
    struct err            err     = { 0 };

    if (vitals_open(&s->vitals, &options, &err) != 0)
        log_warn("no vitals", "reason=%s", err.text);
}

/* A server that cannot be looked into still serves. */
static void open_admin(struct server *s)
{
    char       path[ADMIN_PATH_BYTES];
    struct err err = { 0 };

    if (!s->config->admin)
        return;
    admin_path(path, public_pid(s));
    if (admin_open(&s->admin, s->loop, path, &err) != 0) {
        log_warn("no admin socket", "reason=%s", err.text);
        return;
    }
    admin_about_add(&s->about, s->admin, s->config, s->shared.worker_count);
    admin_eval_add(&s->eval, s->admin, s->loop, &s->shared);
    open_profiler(s);
    open_vitals(s);
}

/* Lua that never waits cannot be stopped from outside, and what it uses cannot be taken down. */
static _Noreturn void leave_stuck(struct server *s, unsigned worker)
{
    log_warn("worker is stuck, the process ends without it", "worker=%u", worker);
    sockets_close(&s->sockets);
    log_flush(s->log, LOG_CLOSE_WAIT_MS);
    _exit(s->exit_status);
}

static void stop_workers(struct server *s)
{
    for (unsigned i = 0; i < s->started; i++)
        if (!worker_stop(s->shared.workers[i], STUCK_MS))
            leave_stuck(s, i);
}

static void close_all(struct server *s)
{
    watchdog_close(s->watchdog);
    admin_close(s->admin);
    profiler_close(s->profiler);
    vitals_close(s->vitals);
    fswatch_close(s->edits);
    stop_workers(s);
    lend_close(&s->lend);
    for (unsigned i = 0; i < s->started; i++)
        worker_free(s->shared.workers[i]);
    free(s->shared.workers);
    tls_certs_close(s->shared.certs);
    chunks_close(s->shared.chunks);
    sockets_close(&s->sockets);
    if (s->loop) {
        timer_stop(&s->load_slow, s->loop);
        timer_stop(&s->drain_limit, s->loop);
        io_stop(&s->signals);
    }
    loop_close(s->loop);
    log_close(s->log);
}

static unsigned worker_count(const struct config *config)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (config->workers)
        return (unsigned)config->workers;
    return cpus < 1 ? 1 : cpus > CONFIG_WORKERS_MAX ? CONFIG_WORKERS_MAX : (unsigned)cpus;
}

static int serve(struct server *s, struct err *err)
{
    int rc = open_shared(s, err);

    if (rc == 0)
        rc = start_workers(s, err);
    if (rc == 0)
        rc = open_watchdog(s, err);
    if (rc != 0)
        return rc;
    reload_init(&s->reload, s->shared.worker_count, &RELOAD_OPS, s);
    reload_begin(&s->reload);
    watch_edits(s);
    if (s->shared.certs)
        tls_certs_watch(s->shared.certs, s->loop, on_new_certs, s);
    open_admin(s);
    loop_run(s->loop);
    return 0;
}

int server_run(struct config *config, struct supervisor_link *link)
{
    struct err    err = { 0 };
    struct server s   = {
          .config    = config,
          .link      = link,
          .signal_fd = -1,
          .shared    = { .config       = config,
                         .worker_count = worker_count(config),
                         .on_report    = on_report },
    };

    s.shared.arg = &s;
    timer_init(&s.load_slow, on_load_slow);
    timer_init(&s.drain_limit, on_drain_limit);
    if (serve(&s, &err) != 0)
        s.exit_status = fail(&s, err.text);
    close_all(&s);
    return s.exit_status;
}
