#include "net/dns_hosts.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* --- whether a file has changed --------------------------------------------------------------- */

bool dns_watch_saw_change(struct dns_watch *watch, uint64_t now_ms)
{
    struct dns_watch was = *watch;
    struct stat      st;

    if (watch->looked && now_ms < watch->next_ms)
        return false;
    watch->looked   = true;
    watch->next_ms  = now_ms + DNS_WATCH_MS;
    watch->mtime_ns = INT64_MIN;
    if (stat(watch->path, &st) == 0) {
        watch->dev      = st.st_dev;
        watch->ino      = st.st_ino;
        watch->bytes    = st.st_size;
        watch->mtime_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
    }
    return !was.looked || was.mtime_ns != watch->mtime_ns || was.ino != watch->ino ||
           was.dev != watch->dev || was.bytes != watch->bytes;
}

/* --- a line ---------------------------------------------------------------------------------- */

static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* Where ADDR is to be linked; NULL: it is there already, or there are too many. */
static struct dns_host **place_for(struct dns_host **at, const struct addr *addr)
{
    unsigned count = 0;

    for (; *at; at = &(*at)->next)
        if (addr_is_equal(&(*at)->addr, addr) || ++count == DNS_HOST_ADDRS_MAX)
            return NULL;
    return at;
}

/* Without memory the name keeps what it has. */
static void add_name(struct map *names, char *name, const struct addr *addr)
{
    struct dns_host *first, *host, **place;

    lower(name);
    first = map_get(names, str_of(name));
    place = place_for(&first, addr);
    host  = place ? malloc(sizeof(*host)) : NULL;
    if (!host)
        return;
    *host = (struct dns_host){ .addr = *addr };
    if (place != &first)
        *place = host;
    else if (!map_put(names, str_of(name), host, NULL))
        free(host);
}

/* "127.0.0.1  localhost alias # comment" */
static void read_line(struct map *names, char *line)
{
    struct addr addr;
    char       *rest = NULL;
    char       *word;

    line[strcspn(line, "#")] = '\0';
    word                     = strtok_r(line, " \t\r", &rest);
    if (!word || !(isxdigit((unsigned char)word[0]) || word[0] == ':') ||
        addr_parse_host(&addr, word, 0, NULL) < 0)
        return;
    while ((word = strtok_r(NULL, " \t\r", &rest)))
        add_name(names, word, &addr);
}

/* --- the file -------------------------------------------------------------------------------- */

static void forget(struct dns_hosts *hosts)
{
    struct str       name;
    size_t           cursor = 0;
    struct dns_host *host, *next;

    while ((host = map_next(&hosts->names, &cursor, &name)))
        for (; host; host = next) {
            next = host->next;
            free(host);
        }
    map_fini(&hosts->names);
    map_init(&hosts->names);
    free(hosts->text);
    hosts->text = NULL;
}

void dns_hosts_take(struct dns_hosts *hosts, char *text)
{
    char *rest = NULL;

    forget(hosts);
    hosts->text = text;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(&hosts->names, line);
}

/* NULL: there is none that could be read. */
static char *read_all(int fd)
{
    struct stat st;
    char       *text;
    size_t      len = 0, room;
    ssize_t     n;

    if (fstat(fd, &st) < 0 || st.st_size > DNS_HOSTS_BYTES_MAX)
        return NULL;
    room = (size_t)st.st_size;
    text = malloc(room + 1);
    while (text && len < room && (n = read(fd, text + len, room - len)) > 0)
        len += (size_t)n;
    if (text)
        text[len] = '\0';
    return text;
}

static void read_file(struct dns_hosts *hosts)
{
    int   fd   = open(hosts->watch.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = fd >= 0 ? read_all(fd) : NULL;

    if (fd >= 0)
        close(fd);
    if (text)
        dns_hosts_take(hosts, text);
    else
        forget(hosts);
}

void dns_hosts_init(struct dns_hosts *hosts, const char *path)
{
    *hosts = (struct dns_hosts){ .watch = { .path = path } };
    map_init(&hosts->names);
}

void dns_hosts_fini(struct dns_hosts *hosts)
{
    forget(hosts);
}

const struct dns_host *dns_hosts_find(struct dns_hosts *hosts, struct str name, uint64_t now_ms)
{
    if (dns_watch_saw_change(&hosts->watch, now_ms))
        read_file(hosts);
    return map_get(&hosts->names, name);
}
