#include "server/vitals_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NETSTAT_BYTES = 16 * 1024 };

/* Empty where there is none. */
static void read_file(const char *path, char *to, size_t room)
{
    int     fd  = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, to, room - 1) : 0;

    if (fd >= 0)
        close(fd);
    to[len < 0 ? 0 : len] = '\0';
}

static uint64_t read_rss(void)
{
    char  text[128];
    char *at;

    read_file("/proc/self/statm", text, sizeof(text));
    strtoull(text, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The kernel tells the number since 6.2; before, they are counted. */
static uint64_t count_fds(void)
{
    struct stat st;
    uint64_t    count = 0;
    DIR        *folder;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (uint64_t)st.st_size;
    folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count > 3 ? count - 3 : 0; /* ".", ".." and the folder itself */
}

/* Names on one line, numbers on the next, in the same order: the one under NAME. */
static uint64_t under(const char *names, const char *name)
{
    const char *numbers = strchr(names, '\n');
    const char *found   = strstr(names, name);

    if (!numbers || !found || found > numbers)
        return 0;
    numbers++;
    for (const char *at = names; at < found; at++)
        if (*at == ' ' && (numbers = strchr(numbers, ' ')))
            numbers++;
    return numbers ? strtoull(numbers, NULL, 10) : 0;
}

static uint64_t read_overflows(void)
{
    char        text[NETSTAT_BYTES];
    const char *names;

    read_file("/proc/self/net/netstat", text, sizeof(text));
    names = strstr(text, "TcpExt: ");
    return names ? under(names, "ListenOverflows") : 0;
}

void vitals_process_read(struct vitals_process *out)
{
    struct timespec cpu;
    struct rusage   usage = { 0 };

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_SELF, &usage);
    *out = (struct vitals_process){ .cpu_ns =
                                        (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec,
                                    .rss_bytes   = read_rss(),
                                    .fds         = count_fds(),
                                    .switches    = (uint64_t)usage.ru_nvcsw,
                                    .preemptions = (uint64_t)usage.ru_nivcsw,
                                    .overflows   = read_overflows() };
}

/* Of one that listens these fields are its queue: tcp_get_info() in the kernel. */
void vitals_backlog_read(struct vitals_backlog *out, int fd)
{
    struct tcp_info info = { 0 };
    socklen_t       len  = sizeof(info);

    *out = (struct vitals_backlog){ 0 };
    if (fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
        info.tcpi_state == TCP_LISTEN)
        *out = (struct vitals_backlog){ info.tcpi_unacked, info.tcpi_sacked };
}
