/* net/dns_hosts.h - the hosts file: names that need no server.
 *
 * Read whole and kept as one table. The file is looked at (stat) at most once a second, and read
 * again when it has changed. A file that is not there, or is larger than DNS_HOSTS_BYTES_MAX, is
 * as an empty one. */
#ifndef NET_DNS_HOSTS_H
#define NET_DNS_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/str.h"
#include "net/addr.h"

enum {
    DNS_HOST_ADDRS_MAX  = 16, /* of one name; the others are left out */
    DNS_HOSTS_BYTES_MAX = 8 << 20,
    DNS_WATCH_MS        = 1000, /* between two looks at a file */
};

/* --- whether a file has changed --------------------------------------------------------------- */

struct dns_watch {
    const char *path;    /* borrowed */
    uint64_t    next_ms; /* when it is looked at next */
    bool        looked;  /* what follows is set */
    dev_t       dev;
    ino_t       ino;
    off_t       bytes;
    int64_t     mtime_ns; /* INT64_MIN: no such file */
};

/* True at first, and whenever the file is not as it was; looks once a second. */
bool dns_watch_saw_change(struct dns_watch *watch, uint64_t now_ms);

/* --- its names ------------------------------------------------------------------------------- */

struct dns_hosts {
    struct dns_watch watch;
    char            *text;  /* owned; names lie in here */
    struct map       names; /* to the first struct dns_host */
};

/* One address of a name, in the file's order. */
struct dns_host {
    struct dns_host *next;
    struct addr      addr; /* port 0 */
};

void dns_hosts_init(struct dns_hosts *hosts, const char *path);
void dns_hosts_fini(struct dns_hosts *hosts);

/* NAME in lower case. NULL: not there. Valid until the next call. */
const struct dns_host *dns_hosts_find(struct dns_hosts *hosts, struct str name, uint64_t now_ms);

/* Reads TEXT, which ends in NUL, is written into and is owned from here on (malloc). */
void dns_hosts_take(struct dns_hosts *hosts, char *text);

#endif
