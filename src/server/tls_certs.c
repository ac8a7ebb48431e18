/* Files are looked at by inotify, and besides from time to time: a link may lead into another folder,
 * whose changes nobody tells of, and that is how certificates are renewed as often as not. */
#include "server/tls_certs.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "ev/fswatch.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "server/config.h"
#include "server/supervisor.h"
#include "server/tls_files.h"

enum {
    LOOK_MS     = 60 * 1000,
    WATCHES_MAX = 16, /* files beyond them are looked at each LOOK_MS alone */
    REMIND_MS   = 24 * 60 * 60 * 1000,
};

#define HELD_AS "tls" /* in the supervisor's hands */

struct tls_certs {
    const struct config    *config; /* borrowed */
    struct tls_files       *files;  /* one hold */
    struct tls_ticket_keys *tickets;

    struct loop    *loop; /* NULL: nobody looks after them yet */
    tls_certs_fn    on_change;
    void           *arg;
    struct fswatch *watches[WATCHES_MAX];
    unsigned        watch_count;
    struct timer    look;
    uint64_t        reminded_ms; /* of certificates that expire */
    uint64_t        seen; /* what the files looked like when they were read last, in one number */

    struct err notice;   /* of the start, before there was a log */
    struct err fallback; /* why the last process's certificates serve; "" if they do not */
};

/* --- the look of the files ---------------------------------------------------------------------------- */

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ (sum >> 29);
}

/* Another file in its place, or another text in the same. */
static uint64_t look_of(const struct tls_files *files)
{
    const char *paths[TLS_PATHS_MAX];
    unsigned    count = tls_files_paths(files, paths);
    uint64_t    sum   = count;

    for (unsigned i = 0; i < count; i++) {
        struct stat about = { 0 };

        if (stat(paths[i], &about) != 0)
            sum = mix(sum, (uint64_t)errno);
        sum = mix(sum, (uint64_t)about.st_ino);
        sum = mix(sum, (uint64_t)about.st_size);
        sum = mix(sum, (uint64_t)about.st_mtim.tv_sec);
        sum = mix(sum, (uint64_t)about.st_mtim.tv_nsec);
    }
    return sum;
}

/* --- the start ---------------------------------------------------------------------------------------- */

/* Nobody is refused for a file that was broken since, or that root alone may read. */
static int fall_back(struct tls_certs *certs, const struct supervisor_link *link, int rc,
                     struct err *err)
{
    int        fd  = supervisor_held(link, HELD_AS, 0);
    struct err why = { 0 };

    if (fd < 0 || tls_files_restore(&certs->files, certs->config, fd, &why) != 0)
        return rc;
    certs->fallback = *err;
    return 0;
}

/* Without it a restart reads the files, as this start did. */
static void keep_for_next(struct tls_certs *certs, struct supervisor_link *link)
{
    struct err err = { 0 };
    int        fd;

    if (link->control_fd < 0 || supervisor_held(link, HELD_AS, 0) >= 0)
        return;
    fd = tls_files_save(certs->files);
    if (fd < 0)
        return;
    supervisor_hold(link, HELD_AS, 0, fd, &err);
    close(fd);
}

static void on_look(struct timer *timer);

int tls_certs_open(struct tls_certs **out, const struct config *config,
                   struct supervisor_link *link, struct err *err)
{
    struct tls_certs *certs;
    bool              wanted;
    int               rc = tls_files_are_wanted(config, &wanted, err);

    *out = NULL;
    if (rc != 0 || !wanted)
        return rc;
    certs = calloc(1, sizeof(*certs));
    if (!certs || !(certs->tickets = tls_ticket_keys_new(0))) {
        free(certs);
        return err_set(err, ERR_MEMORY, "no memory for certificates");
    }
    certs->config = config;
    timer_init(&certs->look, on_look);
    *out = certs;
    rc   = tls_files_read(&certs->files, config, &certs->notice, err);
    if (rc != 0)
        rc = fall_back(certs, link, rc, err);
    if (rc != 0)
        return rc;
    certs->seen = look_of(certs->files);
    keep_for_next(certs, link);
    return 0;
}

void tls_certs_close(struct tls_certs *certs)
{
    if (!certs)
        return;
    for (unsigned i = 0; i < certs->watch_count; i++)
        fswatch_close(certs->watches[i]);
    if (certs->loop)
        timer_stop(&certs->look, certs->loop);
    tls_files_drop(certs->files);
    tls_ticket_keys_free(certs->tickets);
    free(certs);
}

struct tls_files *tls_certs_files(const struct tls_certs *certs)
{
    return certs->files;
}

struct tls_ticket_keys *tls_certs_tickets(const struct tls_certs *certs)
{
    return certs->tickets;
}

/* --- over the days ------------------------------------------------------------------------------------ */

static void remind(struct tls_certs *certs, const struct err *notice)
{
    certs->reminded_ms = clock_mono_ns() / NS_PER_MS;
    if (*notice->text)
        log_warn("certificate warning", "reason=%s", notice->text);
}

static void remind_if_due(struct tls_certs *certs)
{
    struct err notice = { 0 };

    if (clock_mono_ns() / NS_PER_MS - certs->reminded_ms < REMIND_MS)
        return;
    tls_files_check(certs->files, &notice);
    remind(certs, &notice);
}

static void replace(struct tls_certs *certs, struct tls_files *files, const struct err *notice)
{
    tls_files_drop(certs->files);
    certs->files = files;
    certs->on_change(files, certs->arg);
    log_info("certificates reloaded");
    remind(certs, notice);
}

void tls_certs_reload(struct tls_certs *certs)
{
    struct tls_files *files;
    struct err        err = { 0 }, notice = { 0 };

    certs->seen = look_of(certs->files);
    if (tls_files_read(&files, certs->config, &notice, &err) != 0)
        log_error("certificates not reloaded, the old ones go on", "error=%s", err.text);
    else if (tls_files_are_same(files, certs->files))
        tls_files_drop(files);
    else
        replace(certs, files, &notice);
}

static void reload_if_changed(struct tls_certs *certs)
{
    if (look_of(certs->files) != certs->seen)
        tls_certs_reload(certs);
}

static void on_change(const struct fswatch_changes *changes, void *arg)
{
    reload_if_changed(arg);
}

static void on_look(struct timer *timer)
{
    struct tls_certs *certs = container_of(timer, struct tls_certs, look);

    reload_if_changed(certs);
    remind_if_due(certs);
    timer_start(timer, certs->loop, LOOK_MS);
}

/* Root has read them, and we are somebody else now. */
static void warn_of_unreadable(const struct tls_certs *certs)
{
    const char *paths[TLS_PATHS_MAX];
    unsigned    count = tls_files_paths(certs->files, paths);

    for (unsigned i = 0; i < count; i++)
        if (access(paths[i], R_OK) != 0)
            log_warn("certificate will not be reloaded", "file=%s reason=%s", paths[i],
                     strerror(errno));
}

static void watch_files(struct tls_certs *certs)
{
    const char *paths[TLS_PATHS_MAX];
    unsigned    count = tls_files_paths(certs->files, paths);
    struct err  err   = { 0 };

    for (unsigned i = 0; i < count && certs->watch_count < WATCHES_MAX; i++)
        if (fswatch_open(&certs->watches[certs->watch_count], certs->loop, paths[i], on_change,
                         certs, &err) == 0)
            certs->watch_count++;
}

void tls_certs_watch(struct tls_certs *certs, struct loop *loop, tls_certs_fn on_new, void *arg)
{
    certs->loop      = loop;
    certs->on_change = on_new;
    certs->arg       = arg;
    if (*certs->fallback.text)
        log_error("certificates cannot be read again, those of the start serve", "error=%s",
                  certs->fallback.text);
    else
        warn_of_unreadable(certs);
    remind(certs, &certs->notice);
    watch_files(certs);
    timer_start(&certs->look, loop, LOOK_MS);
}
