/* server/vitals_process.h - numbers of the process, for server/vitals_clock.h: memory, descriptors, CPU, who
 * waits for a processor, and what the kernel dropped because nobody accepted it. */
#ifndef SERVER_VITALS_PROCESS_H
#define SERVER_VITALS_PROCESS_H

#include <stdint.h>

/* Those that only grow are counted since the process' start, `overflows` since the machine's. */
struct vitals_process {
    uint64_t cpu_ns;
    uint64_t rss_bytes;
    uint64_t fds;
    uint64_t switches, preemptions; /* it waited; it was made to */
    uint64_t overflows; /* connections dropped with a full accept queue, by the whole machine */
};

/* A few system calls; some 50 us. */
void vitals_process_read(struct vitals_process *out);

struct vitals_backlog {
    unsigned waiting, max;
};
/* Of a listening TCP socket; zeros of any other. */
void vitals_backlog_read(struct vitals_backlog *out, int fd);

#endif
