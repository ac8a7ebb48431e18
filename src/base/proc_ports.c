#include "base/proc_ports.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

enum {
    FAMILY_MAX  = 256,  /* processes of one tree */
    SOCKETS_MAX = 4096, /* that they have open together */
    PATH_BYTES  = 64,
};

/* --- who belongs to it ------------------------------------------------------------------------------ */

struct family {
    pid_t    pids[FAMILY_MAX];
    unsigned count;
};

static bool has(const struct family *family, pid_t pid)
{
    for (unsigned i = 0; i < family->count; i++)
        if (family->pids[i] == pid)
            return true;
    return false;
}

/* The parent stands behind the name, which may hold anything, in brackets. 0: it has gone. */
static pid_t parent_of(pid_t pid)
{
    char  path[PATH_BYTES], text[512];
    FILE *file;
    char *behind;
    int   parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fgets(text, sizeof(text), file) && (behind = strrchr(text, ')')))
        if (sscanf(behind + 1, " %*c %d", &parent) != 1)
            parent = 0;
    fclose(file);
    return (pid_t)parent;
}

/* One generation more. */
static bool add_children(struct family *family)
{
    DIR           *processes = opendir("/proc");
    unsigned       before    = family->count;
    struct dirent *entry;

    while (processes && (entry = readdir(processes))) {
        uint64_t number;

        if (!str_to_u64(str_of(entry->d_name), INT32_MAX, &number)) /* not a process's */
            continue;
        if (family->count < FAMILY_MAX && !has(family, (pid_t)number) &&
            has(family, parent_of((pid_t)number)))
            family->pids[family->count++] = (pid_t)number;
    }
    if (processes)
        closedir(processes);
    return family->count > before;
}

/* --- which sockets they have ------------------------------------------------------------------------- */

struct sockets {
    unsigned long inodes[SOCKETS_MAX];
    unsigned      count;
};

static void add_socket(struct sockets *sockets, int folder, const char *name)
{
    char          target[64];
    ssize_t       len = readlinkat(folder, name, target, sizeof(target) - 1);
    unsigned long inode;

    if (len <= 0 || sockets->count == SOCKETS_MAX)
        return;
    target[len] = '\0';
    if (sscanf(target, "socket:[%lu]", &inode) == 1)
        sockets->inodes[sockets->count++] = inode;
}

static void add_sockets_of(struct sockets *sockets, pid_t pid)
{
    char           path[PATH_BYTES];
    DIR           *folder;
    struct dirent *entry;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder)))
        add_socket(sockets, dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
}

static bool owns(const struct sockets *sockets, unsigned long inode)
{
    for (unsigned i = 0; i < sockets->count; i++)
        if (sockets->inodes[i] == inode)
            return true;
    return false;
}

/* --- where these listen -------------------------------------------------------------------------------- */

struct found {
    uint16_t *ports;
    unsigned  count;
};

static void add_port(struct found *found, unsigned port)
{
    for (unsigned i = 0; i < found->count; i++)
        if (found->ports[i] == port)
            return;
    if (found->count < PROC_PORTS_MAX)
        found->ports[found->count++] = (uint16_t)port;
}

/* A row of the kernel's table: number, local address:port, remote, state (0A: it listens), ... */
static void look_through(struct found *found, const struct sockets *sockets, const char *table)
{
    FILE         *file = fopen(table, "re");
    char          row[512];
    unsigned      port, state;
    unsigned long inode;

    while (file && fgets(row, sizeof(row), file))
        if (sscanf(row, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", &port, &state,
                   &inode) == 3 &&
            state == 0x0a && owns(sockets, inode))
            add_port(found, port);
    if (file)
        fclose(file);
}

static int by_number(const void *a, const void *b)
{
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

unsigned proc_ports(pid_t pid, uint16_t ports[PROC_PORTS_MAX])
{
    struct family  family  = { { pid }, 1 };
    struct sockets sockets = { .count = 0 };
    struct found   found   = { ports, 0 };

    while (add_children(&family))
        continue;
    for (unsigned i = 0; i < family.count; i++)
        add_sockets_of(&sockets, family.pids[i]);
    look_through(&found, &sockets, "/proc/net/tcp");
    look_through(&found, &sockets, "/proc/net/tcp6");
    qsort(ports, found.count, sizeof(*ports), by_number);
    return found.count;
}
