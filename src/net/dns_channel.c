/* c-ares tells by a callback which of its sockets wait for what, and ares_process_fd() lets it read
 * or write one of them. A socket has one edge-triggered registration for its whole life; as c-ares
 * does not always read until nothing is left (1.18 reads a TCP answer's length and its body in two
 * calls), a socket is processed as long as poll() finds it ready.
 *
 * The hosts file is never looked at ("b": by DNS only), the cache that newer versions have is off,
 * and addresses are not sorted by c-ares: it opens a socket for each, and an answer of 64 KiB has
 * four thousand. */
#include "net/dns_channel.h"

#include <ares.h>
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"
#include "ev/loop.h"
#include "ev/timer.h"

enum {
    EDNS_BYTES      = 1232, /* fits into one packet everywhere (DNS flag day 2020) */
    PORT_QUERIES    = 32,   /* then another source port: harder to guess */
    ROUNDS_PER_TURN = 16,
    TTL_MAX_S       = 86400,
    MS_PER_S        = 1000,
};

struct dns_channel {
    struct loop *loop;
    ares_channel ares;
    struct list  sockets;
    struct later pump;
    struct timer timeout;
    unsigned     open_count;
};

/* Freed when c-ares closes the descriptor. */
struct channel_socket {
    struct list         link;
    struct io           io;
    struct dns_channel *channel;
    int                 fd;
    bool                wants_read, wants_write;
};

struct ask {
    struct dns_channel *channel;
    dns_answer_fn       fn;
    void               *arg;
};

/* --- time ------------------------------------------------------------------------------------ */

/* After each call into c-ares. */
static void set_timer(struct dns_channel *channel)
{
    struct timeval  tv;
    struct timeval *wait = ares_timeout(channel->ares, NULL, &tv);

    if (!wait)
        timer_stop(&channel->timeout, channel->loop);
    else /* c-ares drops what is less than 1 ms, and would be asked over and over within it */
        timer_start(&channel->timeout, channel->loop,
                    (uint64_t)wait->tv_sec * MS_PER_S + (uint64_t)wait->tv_usec / 1000 + 1);
}

static void on_timeout(struct timer *timer)
{
    struct dns_channel *channel = container_of(timer, struct dns_channel, timeout);

    ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(channel);
}

/* --- sockets --------------------------------------------------------------------------------- */

static struct channel_socket *find_socket(struct dns_channel *channel, int fd)
{
    list_each(node, &channel->sockets)
    {
        struct channel_socket *s = container_of(node, struct channel_socket, link);

        if (s->fd == fd)
            return s;
    }
    return NULL;
}

/* Whether c-ares did something with it. It may be closed then. */
static bool process(struct channel_socket *s)
{
    struct pollfd poll_fd = { .fd = s->fd };
    bool          can_read, can_write;

    poll_fd.events = (short)((s->wants_read ? POLLIN : 0) | (s->wants_write ? POLLOUT : 0));
    if (poll_fd.events == 0 || poll(&poll_fd, 1, 0) <= 0)
        return false;
    can_read  = s->wants_read && (poll_fd.revents & (POLLIN | POLLERR | POLLHUP));
    can_write = s->wants_write && (poll_fd.revents & (POLLOUT | POLLERR | POLLHUP));
    if (!can_read && !can_write)
        return false;
    ares_process_fd(s->channel->ares, can_read ? s->fd : ARES_SOCKET_BAD,
                    can_write ? s->fd : ARES_SOCKET_BAD);
    return true;
}

/* False: nothing was ready. After each step the list may be another. */
static bool process_one_ready(struct dns_channel *channel)
{
    list_each(node, &channel->sockets) if (process(container_of(node, struct channel_socket,
                                                                link))) return true;
    return false;
}

static void on_pump(struct later *later)
{
    struct dns_channel *channel = container_of(later, struct dns_channel, pump);

    for (unsigned i = 0; process_one_ready(channel); i++)
        if (i == ROUNDS_PER_TURN) {
            loop_later(channel->loop, later);
            break;
        }
    set_timer(channel);
}

static void on_ready(int fd, short what, void *arg)
{
    struct channel_socket *s = arg;

    loop_later(s->channel->loop, &s->channel->pump);
}

static void drop_socket(struct channel_socket *s)
{
    io_stop(&s->io);
    list_remove(&s->link);
    free(s);
}

/* Without memory c-ares waits for nothing, and its timeout comes. */
static struct channel_socket *watch_socket(struct dns_channel *channel, int fd)
{
    struct channel_socket *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->channel = channel;
    s->fd      = fd;
    list_append(&channel->sockets, &s->link);
    io_start_edge(&s->io, channel->loop, fd, on_ready, s);
    return s;
}

static void on_interest(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct dns_channel    *channel = arg;
    struct channel_socket *s       = find_socket(channel, fd);

    if (s && !readable && !writable) {
        drop_socket(s);
        return;
    }
    if (!s && (readable || writable))
        s = watch_socket(channel, fd);
    if (!s)
        return;
    s->wants_read  = readable;
    s->wants_write = writable;
    if (writable) /* it may have been so for long: no edge would come */
        loop_later(channel->loop, &channel->pump);
}

/* --- an answer ------------------------------------------------------------------------------- */

static const struct {
    int         status, rc;
    const char *reason;
} faults[] = {
    { ARES_ENOTFOUND, ERR_NOT_FOUND, "no such name" },
    { ARES_ENODATA, ERR_NOT_FOUND, "the name has no address" },
    { ARES_ETIMEOUT, ERR_TIMEOUT, "no answer from the name server" },
    { ARES_ECONNREFUSED, ERR_SYSTEM, "no name server answers" },
    { ARES_ESERVFAIL, ERR_SYSTEM, "the name server failed" },
    { ARES_EREFUSED, ERR_SYSTEM, "the name server refused to answer" },
    { ARES_ENOTIMP, ERR_SYSTEM, "the name server does not know this kind of question" },
    { ARES_EFORMERR, ERR_SYSTEM, "the name server did not understand the question" },
    { ARES_EBADRESP, ERR_SYSTEM, "the name server's answer is malformed" },
    { ARES_EBADNAME, ERR_INVALID, "not a host name" },
    { ARES_ENOMEM, ERR_MEMORY, "out of memory" },
    { ARES_EDESTRUCTION, ERR_CANCELLED, "cancelled" },
    { ARES_ECANCELLED, ERR_CANCELLED, "cancelled" },
};

static void set_fault(struct dns_answer *answer, int status)
{
    answer->rc     = ERR_SYSTEM;
    answer->reason = "the name could not be looked up";
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (faults[i].status == status) {
            answer->rc     = faults[i].rc;
            answer->reason = faults[i].reason;
        }
}

/* Connecting a datagram socket asks the routing table and sends nothing. */
static bool can_reach(const struct addr *addr)
{
    struct addr             at = *addr;
    struct sockaddr_storage sa;
    socklen_t               len;
    int                     fd = socket(at.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool                    reached;

    if (fd < 0)
        return false;
    at.port = 53;
    len     = addr_to_sockaddr(&at, &sa);
    reached = connect(fd, (struct sockaddr *)&sa, len) == 0;
    close(fd);
    return reached;
}

/* As they came, without those that are neither IPv4 nor IPv6. Returns how many. */
static unsigned take_family(struct addr *to, const struct ares_addrinfo *info, int family)
{
    unsigned count = 0;

    for (struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next)
        if (node->ai_family == family && count < DNS_CHANNEL_ADDRS_MAX)
            addr_from_sockaddr(&to[count++], node->ai_addr, node->ai_addrlen);
    for (unsigned i = 0; i < count; i++)
        to[i].port = 0;
    return count;
}

/* IPv6 and IPv4 in turn (RFC 8305, 4), IPv6 first where this machine has a way to it. */
static void take_addrs(struct dns_answer *answer, const struct ares_addrinfo *info)
{
    struct addr  six[DNS_CHANNEL_ADDRS_MAX], four[DNS_CHANNEL_ADDRS_MAX];
    unsigned     six_count  = take_family(six, info, AF_INET6);
    unsigned     four_count = take_family(four, info, AF_INET);
    bool         six_first  = six_count > 0 && (four_count == 0 || can_reach(&six[0]));
    struct addr *first = six_first ? six : four, *second = six_first ? four : six;
    unsigned     first_count  = six_first ? six_count : four_count;
    unsigned     second_count = six_first ? four_count : six_count;

    for (unsigned i = 0; i < first_count || i < second_count; i++) {
        if (i < first_count && answer->count < DNS_CHANNEL_ADDRS_MAX)
            answer->addrs[answer->count++] = first[i];
        if (i < second_count && answer->count < DNS_CHANNEL_ADDRS_MAX)
            answer->addrs[answer->count++] = second[i];
    }
}

static uint32_t least(uint32_t ttl_s, int of_record)
{
    uint32_t seconds = of_record < 0 ? 0 : (uint32_t)of_record;

    return seconds < ttl_s ? seconds : ttl_s;
}

static uint32_t ttl_of(const struct ares_addrinfo *info)
{
    uint32_t ttl_s = TTL_MAX_S;

    for (struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next)
        ttl_s = least(ttl_s, node->ai_ttl);
    for (struct ares_addrinfo_cname *cname = info->cnames; cname; cname = cname->next)
        ttl_s = least(ttl_s, cname->ttl);
    return ttl_s;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    struct ask        ask    = *(struct ask *)arg;
    struct dns_answer answer = { .rc = 0 };

    free(arg);
    ask.channel->open_count--;
    if (status == ARES_SUCCESS && info) {
        take_addrs(&answer, info);
        answer.ttl_s = ttl_of(info);
        if (answer.count == 0)
            set_fault(&answer, ARES_ENODATA);
    } else {
        set_fault(&answer, status);
    }
    if (info)
        ares_freeaddrinfo(info);
    ask.fn(&answer, ask.arg);
}

void dns_channel_ask(struct dns_channel *channel, const char *name, dns_answer_fn fn, void *arg)
{
    struct ares_addrinfo_hints hints = { .ai_flags    = ARES_AI_NOSORT,
                                         .ai_family   = AF_UNSPEC,
                                         .ai_socktype = SOCK_STREAM };
    struct dns_answer          answer;
    struct ask                *ask = malloc(sizeof(*ask));

    if (!ask) {
        answer = (struct dns_answer){ .rc = ERR_MEMORY, .reason = "out of memory" };
        fn(&answer, arg);
        return;
    }
    *ask = (struct ask){ channel, fn, arg };
    channel->open_count++;
    ares_getaddrinfo(channel->ares, name, NULL, &hints, on_answer, ask);
    set_timer(channel);
}

unsigned dns_channel_open_count(const struct dns_channel *channel)
{
    return channel->open_count;
}

/* --- life ------------------------------------------------------------------------------------ */

static int fail(struct err *err, int status)
{
    int rc = status == ARES_ENOMEM ? ERR_MEMORY : ERR_SYSTEM;

    return err_set(err, rc, "the resolver could not be opened: %s", ares_strerror(status));
}

static int open_ares(struct dns_channel *channel, const struct dns_channel_options *options,
                     struct err *err)
{
    struct ares_options ares = {
        .flags              = ARES_FLAG_EDNS,
        .timeout            = (int)options->timeout_ms,
        .tries              = (int)options->tries,
        .lookups            = (char *)"b",
        .sock_state_cb      = on_interest,
        .sock_state_cb_data = channel,
        .ednspsz            = EDNS_BYTES,
        .resolvconf_path    = (char *)options->resolv_path,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
               ARES_OPT_SOCK_STATE_CB | ARES_OPT_EDNSPSZ | ARES_OPT_RESOLVCONF;
    int status;

#ifdef ARES_OPT_UDP_MAX_QUERIES /* since 1.20 */
    ares.udp_max_queries = PORT_QUERIES;
    mask |= ARES_OPT_UDP_MAX_QUERIES;
#endif
#ifdef ARES_OPT_QUERY_CACHE /* since 1.31; zero turns it off */
    ares.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    status = ares_init_options(&channel->ares, &ares, mask);
    if (status != ARES_SUCCESS)
        return fail(err, status);
    if (!options->servers)
        return 0;
    status = ares_set_servers_ports_csv(channel->ares, options->servers);
    if (status == ARES_SUCCESS)
        return 0;
    ares_destroy(channel->ares);
    return err_set(err, ERR_INVALID, "\"%s\" are no name servers (\"127.0.0.1:5353,10.0.0.2\")",
                   options->servers);
}

int dns_channel_open(struct dns_channel **out, struct loop *loop,
                     const struct dns_channel_options *options, struct err *err)
{
    struct dns_channel *channel = calloc(1, sizeof(*channel));
    int                 rc;

    if (!channel)
        return err_set(err, ERR_MEMORY, "out of memory");
    channel->loop = loop;
    list_init(&channel->sockets);
    later_init(&channel->pump, on_pump);
    timer_init(&channel->timeout, on_timeout);
    rc = open_ares(channel, options, err);
    if (rc < 0) {
        free(channel);
        return rc;
    }
    *out = channel;
    return 0;
}

void dns_channel_close(struct dns_channel *channel)
{
    if (!channel)
        return;
    ares_destroy(channel->ares);
    assert(channel->open_count == 0);
    list_each_safe(node, &channel->sockets)
        drop_socket(container_of(node, struct channel_socket, link));
    later_cancel(&channel->pump);
    timer_stop(&channel->timeout, channel->loop);
    free(channel);
}
