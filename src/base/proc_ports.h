/* base/proc_ports.h - on which TCP ports a process listens, it and all that it has started: read from
 * /proc, so of one's own processes alone. Blocks for a millisecond or so. */
#ifndef BASE_PROC_PORTS_H
#define BASE_PROC_PORTS_H

#include <stdint.h>
#include <sys/types.h>

enum { PROC_PORTS_MAX = 64 };

/* How many of them there are, in rising order, each once; those behind PROC_PORTS_MAX are left out. */
unsigned proc_ports(pid_t pid, uint16_t ports[PROC_PORTS_MAX]);

#endif
