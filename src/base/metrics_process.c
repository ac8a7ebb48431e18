#include "base/metrics_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/metrics_text.h"

enum {
    TEXT_BYTES      = 1024,
    FIELD_VSIZE     = 23, /* of /proc/self/stat: proc(5) */
    FIELD_RSS       = 24,
    FIELD_STARTTIME = 22,
};

static bool read_file(const char *path, char *to, size_t room)
{
    int     fd  = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, to, room - 1) : -1;

    if (fd >= 0)
        close(fd);
    if (len < 0)
        return false;
    to[len] = '\0';
    return true;
}

/* Fields are counted from behind the command's name, which may hold anything. */
static double stat_field(const char *stat, int field)
{
    const char *at    = strrchr(stat, ')');
    double      value = 0;

    for (int i = 2; at && i < field; i++)
        at = strchr(at + 1, ' ');
    if (at)
        sscanf(at, "%lf", &value);
    return value;
}

/* Of the machine's start, in seconds since 1970: the clock is set now and then, so it is read anew. */
static double boot_time(void)
{
    struct timespec now, up;

    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9;
}

static void tell(struct metrics_out *out, enum metric_kind kind, const char *name, const char *help,
                 double value)
{
    metrics_out_family(out, kind, name, help);
    metrics_out_sample(out, value, NULL);
}

static void tell_memory(struct metrics_out *out, const char *stat)
{
    tell(out, METRIC_GAUGE, "process_resident_memory_bytes", "Memory in RAM.",
         stat_field(stat, FIELD_RSS) * (double)sysconf(_SC_PAGESIZE));
    tell(out, METRIC_GAUGE, "process_virtual_memory_bytes", "Address space in use.",
         stat_field(stat, FIELD_VSIZE));
    tell(out, METRIC_GAUGE, "process_start_time_seconds", "When it started, since 1970.",
         boot_time() + stat_field(stat, FIELD_STARTTIME) / (double)sysconf(_SC_CLK_TCK));
}

static void tell_cpu(struct metrics_out *out)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    tell(out, METRIC_COUNTER, "process_cpu_seconds_total", "CPU time of all threads.",
         (double)used.tv_sec + (double)used.tv_nsec / 1e9);
}

/* Counted one by one where the kernel (before 6.2) does not tell the number; without our own. */
static unsigned count_open_fds(void)
{
    struct stat st;
    unsigned    count = 0;
    DIR        *folder;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (unsigned)st.st_size;
    folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count > 3 ? count - 3 : 0;
}

static void tell_fds(struct metrics_out *out)
{
    struct rlimit limit;

    tell(out, METRIC_GAUGE, "process_open_fds", "Open descriptors.", count_open_fds());
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        tell(out, METRIC_GAUGE, "process_max_fds", "Descriptors that may be open.",
             (double)limit.rlim_cur);
}

static void collect(struct metrics_out *out, void *arg)
{
    char text[TEXT_BYTES];

    if (read_file("/proc/self/stat", text, sizeof(text)))
        tell_memory(out, text);
    tell_cpu(out);
    tell_fds(out);
}

void metrics_process_open(struct metrics *metrics, struct metrics_collector *collector)
{
    *collector = (struct metrics_collector){ .collect = collect };
    metrics_collect(metrics, collector);
}
