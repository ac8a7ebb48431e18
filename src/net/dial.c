#include "net/dial.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    UNIX_AGAIN_MS = 10, /* a Unix socket whose queue is full does not tell when it has room */
};

static void begin_next(struct dial *dial);

/* --- the end --------------------------------------------------------------------------------- */

static void close_racer(struct dial_racer *racer)
{
    if (racer->fd < 0)
        return;
    io_stop(&racer->io);
    close(racer->fd);
    racer->fd = -1;
}

static void stop_all(struct dial *dial)
{
    dns_cancel(&dial->query);
    for (unsigned i = 0; i < DIAL_RACERS_MAX; i++)
        close_racer(&dial->racers[i]);
    timer_stop(&dial->stagger, dial->loop);
    timer_stop(&dial->limit, dial->loop);
}

/* done() is called in the loop's next round, so that nobody is called from within dial_start(). */
static void finish(struct dial *dial, int rc)
{
    stop_all(dial);
    dial->rc = rc;
    loop_later(dial->loop, &dial->report);
}

static void on_report(struct later *later)
{
    struct dial *dial = container_of(later, struct dial, report);

    dial->running = false;
    dial->done(dial);
}

void dial_cancel(struct dial *dial)
{
    if (!dial->running)
        return;
    dial->running = false;
    stop_all(dial);
    later_cancel(&dial->report);
    if (dial->fd >= 0) /* connected, and not reported yet */
        close(dial->fd);
    dial->fd = -1;
}

/* --- faults ---------------------------------------------------------------------------------- */

static int code_of(int number)
{
    switch (number) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENOENT: return ERR_CLOSED; /* ENOENT: a path where nobody listens */
    case ETIMEDOUT: return ERR_TIMEOUT;
    default: return ERR_SYSTEM;
    }
}

/* Where it was to go, and by which address if that was not said. */
static void describe(const struct dial *dial, const struct addr *addr, char *to, size_t size)
{
    char text[ADDR_TEXT_BYTES];

    if (addr->family == AF_UNIX || dial->query.count == 0)
        snprintf(to, size, "%s", addr_format(addr, text));
    else if (strcmp(addr_format_host(addr, text), dial->name) == 0)
        snprintf(to, size, "%s", addr_format(addr, text));
    else if (dial->query.count == 1)
        snprintf(to, size, "%s:%u (%s)", dial->name, addr->port, text);
    else
        snprintf(to, size, "%s:%u (%u addresses, among them %s)", dial->name, addr->port,
                 dial->query.count, text);
}

/* "no route" to one address says less than "refused" by another. */
static void note_fault(struct dial *dial, const struct addr *addr, int number)
{
    char where[DNS_NAME_BYTES_MAX + ADDR_TEXT_BYTES + 64], why[128];
    int  code = code_of(number);

    if (dial->err.code != ERR_NONE && (dial->err.code == ERR_CLOSED || code == ERR_SYSTEM))
        return;
    describe(dial, addr, where, sizeof(where));
    snprintf(why, sizeof(why), "%s", strerror(number));
    why[0] = (char)tolower((unsigned char)why[0]);
    err_set(&dial->err, code, "%s: %s", where, why);
}

static void on_limit(struct timer *timer)
{
    struct dial *dial      = container_of(timer, struct dial, limit);
    bool         resolving = dial->query.lookup != NULL;
    char         where[DNS_NAME_BYTES_MAX + ADDR_TEXT_BYTES + 64];

    if (resolving)
        err_set(&dial->err, ERR_TIMEOUT, "%s: no answer from the name server in time", dial->name);
    else {
        describe(dial, &dial->query.addrs[0], where, sizeof(where));
        err_set(&dial->err, ERR_TIMEOUT, "%s: not connected in time", where);
    }
    finish(dial, ERR_TIMEOUT);
}

/* --- the race -------------------------------------------------------------------------------- */

static struct dial_racer *find_idle(struct dial *dial)
{
    for (unsigned i = 0; i < DIAL_RACERS_MAX; i++)
        if (dial->racers[i].fd < 0)
            return &dial->racers[i];
    return NULL;
}

/* Addresses are tried in order, so the first one's racer is the oldest. NULL: none runs. */
static struct dial_racer *find_oldest(struct dial *dial)
{
    struct dial_racer *oldest = NULL;

    for (unsigned i = 0; i < DIAL_RACERS_MAX; i++) {
        struct dial_racer *racer = &dial->racers[i];

        if (racer->fd >= 0 && (!oldest || racer->addr < oldest->addr))
            oldest = racer;
    }
    return oldest;
}

static void win(struct dial_racer *racer)
{
    struct dial *dial = racer->dial;
    int          one  = 1;

    io_stop(&racer->io);
    dial->fd   = racer->fd;
    dial->peer = *racer->addr;
    racer->fd  = -1;
    if (dial->peer.family != AF_UNIX)
        setsockopt(dial->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    dial->err.code = ERR_NONE;
    finish(dial, 0);
}

static void lose(struct dial_racer *racer, int number)
{
    struct dial *dial = racer->dial;

    close_racer(racer);
    note_fault(dial, racer->addr, number);
    begin_next(dial);
}

/* An edge may come before the connection has (libevent tells of a fresh socket's hang-up). */
static void on_event(int fd, short what, void *arg)
{
    struct dial_racer      *racer  = arg;
    int                     number = 0;
    socklen_t               len    = sizeof(number);
    struct sockaddr_storage sa;
    socklen_t               sa_len = sizeof(sa);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) < 0)
        number = errno;
    if (number != 0)
        lose(racer, number);
    else if (getpeername(fd, (struct sockaddr *)&sa, &sa_len) == 0)
        win(racer);
}

/* 0, or an errno; EAGAIN: a Unix socket's queue is full. */
static int begin(struct dial_racer *racer, const struct addr *addr)
{
    struct sockaddr_storage sa;
    socklen_t               len = addr_to_sockaddr(addr, &sa);

    racer->addr = addr;
    racer->fd   = socket(addr->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (racer->fd < 0)
        return errno;
    if (connect(racer->fd, (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS)
        return errno;
    if (io_start_edge(&racer->io, racer->dial->loop, racer->fd, on_event, racer) < 0)
        return errno;
    return 0;
}

static bool has_begun(struct dial *dial, struct dial_racer *racer, const struct addr *addr)
{
    int number = begin(racer, addr);

    if (number == 0)
        return true;
    close_racer(racer);
    if (number == EAGAIN && addr->family == AF_UNIX) {
        dial->next--;
        timer_start(&dial->stagger, dial->loop, UNIX_AGAIN_MS);
        return true;
    }
    note_fault(dial, addr, number);
    return false;
}

/* All are taken: the one that has tried for longest, a second by now, makes room. */
static struct dial_racer *free_racer(struct dial *dial)
{
    struct dial_racer *racer = find_idle(dial);

    if (racer)
        return racer;
    racer = find_oldest(dial);
    note_fault(dial, racer->addr, ETIMEDOUT);
    close_racer(racer);
    return racer;
}

/* Tries the next address that can be tried at all; ends the race when there is none. */
static void begin_next(struct dial *dial)
{
    const struct dns_query *query = &dial->query;

    timer_stop(&dial->stagger, dial->loop);
    while (dial->next < query->count) {
        const struct addr *addr = &query->addrs[dial->next++];

        if (!has_begun(dial, free_racer(dial), addr))
            continue;
        if (dial->next < query->count && !timer_is_running(&dial->stagger))
            timer_start(&dial->stagger, dial->loop, DIAL_NEXT_MS);
        return;
    }
    if (!find_oldest(dial))
        finish(dial, dial->err.code);
}

static void on_stagger(struct timer *timer)
{
    begin_next(container_of(timer, struct dial, stagger));
}

/* --- the beginning --------------------------------------------------------------------------- */

static void race(struct dial *dial)
{
    if (dial->query.rc == 0) {
        begin_next(dial);
        return;
    }
    dial->err = dial->query.err;
    finish(dial, dial->query.rc);
}

static void on_resolved(struct dns_query *query)
{
    race(container_of(query, struct dial, query));
}

static void start_path(struct dial *dial, const char *path)
{
    struct dns_query *query = &dial->query;

    query->rc    = addr_parse_path(&query->addrs[0], path, &query->err);
    query->count = query->rc == 0 ? 1 : 0;
    race(dial);
}

/* For messages: without brackets, in so far as it fits. */
static void copy_name(struct dial *dial, struct str host)
{
    if (host.len >= 2 && host.at[0] == '[' && host.at[host.len - 1] == ']')
        host = str_make(host.at + 1, host.len - 2);
    snprintf(dial->name, sizeof(dial->name), "%.*s", STR_ARG(host));
}

static void reset(struct dial *dial, struct loop *loop)
{
    dial->loop     = loop;
    dial->next     = 0;
    dial->running  = true;
    dial->fd       = -1;
    dial->rc       = 0;
    dial->err.code = ERR_NONE;
    dial->query    = (struct dns_query){ .done = on_resolved };
    dial->name[0]  = '\0';
    for (unsigned i = 0; i < DIAL_RACERS_MAX; i++)
        dial->racers[i] = (struct dial_racer){ .dial = dial, .fd = -1 };
    timer_init(&dial->stagger, on_stagger);
    timer_init(&dial->limit, on_limit);
    later_init(&dial->report, on_report);
}

void dial_start(struct dial *dial, struct dns *dns, struct loop *loop,
                const struct dial_target *target)
{
    assert(!dial->running);
    reset(dial, loop);
    if (target->timeout_ms > 0)
        timer_start(&dial->limit, loop, target->timeout_ms);
    if (target->path) {
        start_path(dial, target->path);
        return;
    }
    copy_name(dial, target->host);
    if (dns_resolve(dns, &dial->query, target->host, target->port))
        race(dial);
}
