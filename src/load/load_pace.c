#include "load/load_pace.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

static uint64_t moment(const struct load_pace *pace, uint64_t number)
{
    return pace->start_ns + (uint64_t)(pace->offset_ns + pace->interval_ns * (double)number);
}

static void on_timer(int fd, short what, void *arg)
{
    struct load_pace *pace = arg;
    uint64_t          times;

    if (read(fd, &times, sizeof(times)) == sizeof(times))
        pace->on_due(pace);
}

int load_pace_open(struct load_pace *pace, struct loop *loop, double rate, unsigned thread,
                   unsigned threads, uint64_t start_ns, load_pace_fn on_due, struct err *err)
{
    *pace = (struct load_pace){ .start_ns    = start_ns,
                                .interval_ns = threads * (NS_PER_S / rate),
                                .offset_ns   = thread * (NS_PER_S / rate),
                                .on_due      = on_due,
                                .fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC) };
    if (pace->fd < 0 || io_start_level(&pace->io, loop, pace->fd, on_timer, pace) != 0)
        return err_set(err, ERR_SYSTEM, "no timer for the load: %s", strerror(errno));
    return 0;
}

void load_pace_close(struct load_pace *pace)
{
    if (pace->fd < 0)
        return;
    io_stop(&pace->io);
    close(pace->fd);
    pace->fd = -1;
}

bool load_pace_take(struct load_pace *pace, uint64_t now_ns, uint64_t *planned_ns)
{
    *planned_ns = moment(pace, pace->next);
    if (*planned_ns > now_ns)
        return false;
    pace->next++;
    return true;
}

void load_pace_wait(struct load_pace *pace)
{
    uint64_t          at   = moment(pace, pace->next);
    struct itimerspec when = { .it_value = { .tv_sec  = (time_t)(at / NS_PER_S),
                                             .tv_nsec = (long)(at % NS_PER_S) } };

    timerfd_settime(pace->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

uint64_t load_pace_backlog(const struct load_pace *pace, uint64_t now_ns)
{
    uint64_t come;

    if (!pace->interval_ns || now_ns < moment(pace, 0))
        return 0;
    come = (uint64_t)((double)(now_ns - moment(pace, 0)) / pace->interval_ns) + 1;
    return come > pace->next ? come - pace->next : 0;
}
