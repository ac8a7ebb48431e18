/* A name goes through these, and the first that knows it answers: is it an address; the hosts file;
 * localhost; what is kept; the servers.
 *
 * A lookup is a name that is asked for or known, in the table `names`. Questions hang from the one
 * that will answer them. The loop's next round after its answer calls their done(): never from
 * within c-ares. A lookup goes on when all its questions have been cancelled, for c-ares cannot
 * forget one, and the answer is kept. */
#include "net/dns.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "net/dns_channel.h"
#include "net/dns_hosts.h"

static_assert((int)DNS_ADDRS_MAX == (int)DNS_CHANNEL_ADDRS_MAX, "an answer fits a question");

enum {
    NAMES_KEPT_MAX    = 1024,
    LOOKUPS_MAX       = 1024,  /* names that are asked for at a time, then ERR_BUSY */
    LIMIT_MS          = 15000, /* of a lookup, whatever c-ares still tries */
    MISSING_KEPT_MS   = 5000,  /* "no such name" */
    FAULT_KEPT_MS     = 1000,  /* no server answers: those who come meanwhile need not wait again */
    TIMEOUT_MS        = 1500,
    TRIES             = 3,
    LABEL_BYTES_MAX   = 63,
    NAME_BYTES_MAX    = 253, /* without the dot at its end (RFC 1035, 2.3.4) */
    LITERAL_BYTES_MAX = 64,
    MS_PER_S          = 1000,
};

enum lookup_state {
    LOOKING,  /* the servers are asked */
    ANSWERED, /* its questions are told in the next round */
    KEPT,     /* for those who ask until `until_ms` */
    LATE,     /* its questions were told ERR_TIMEOUT, and c-ares still tries: freed when it ends */
};

struct lookup {
    struct list       link; /* in the list of its state; LATE: in none */
    struct list       questions;
    struct dns       *dns;
    enum lookup_state state;
    bool              asked;     /* c-ares names it */
    bool              forgotten; /* not in the table: not kept */
    struct timer      limit;

    uint64_t     until_ms; /* from here on: set once it is answered */
    int          rc;
    const char  *reason;
    unsigned     count;
    struct addr *addrs; /* owned */
    char         name[];
};

struct dns {
    struct loop       *loop;
    struct dns_options options;
    char              *texts[3]; /* owned copies of the options' texts */

    struct dns_hosts hosts;
    struct dns_watch resolv;

    struct dns_channel *channel; /* that is asked now; NULL: to be opened */
    struct list         retired; /* those of an older resolv.conf that still have to answer */
    struct later        sweep;   /* closes what is retired and at rest */

    struct map   names; /* to struct lookup */
    struct list  looking;
    struct list  answered;
    struct list  kept; /* the longest unused first */
    unsigned     kept_count;
    unsigned     looking_count;
    unsigned     waiting; /* questions */
    struct later tell;
};

struct retired {
    struct list         link;
    struct dns_channel *channel;
};

/* --- answering a question ------------------------------------------------------------------- */

static bool answer_with(struct dns_query *query, const struct addr *addrs, unsigned count)
{
    query->rc       = 0;
    query->err.code = ERR_NONE;
    query->count    = count < DNS_ADDRS_MAX ? count : DNS_ADDRS_MAX;
    for (unsigned i = 0; i < query->count; i++) {
        query->addrs[i]      = addrs[i];
        query->addrs[i].port = query->port;
    }
    return true;
}

static bool answer_fault(struct dns_query *query, int rc, struct str name, const char *reason)
{
    query->rc    = rc;
    query->count = 0;
    err_set(&query->err, rc, "%.*s: %s", STR_ARG(name), reason);
    return true;
}

static bool answer_from(struct dns_query *query, const struct lookup *lookup)
{
    if (lookup->rc == 0)
        return answer_with(query, lookup->addrs, lookup->count);
    return answer_fault(query, lookup->rc, str_of(lookup->name), lookup->reason);
}

/* --- what needs no server ------------------------------------------------------------------- */

static bool answer_literal(struct dns_query *query, struct str host)
{
    char        text[LITERAL_BYTES_MAX];
    struct addr addr;

    if (host.len >= sizeof(text) || str_find(host, '\0') < host.len)
        return false;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    if (strcmp(text, "localhost") == 0 || addr_parse_host(&addr, text, 0, NULL) < 0)
        return false;
    return answer_with(query, &addr, 1);
}

static bool answer_hosts(struct dns_query *query, struct dns *dns, struct str name)
{
    struct addr            addrs[DNS_ADDRS_MAX];
    unsigned               count = 0;
    const struct dns_host *host  = dns_hosts_find(&dns->hosts, name, loop_now_ms(dns->loop));

    for (; host && count < DNS_ADDRS_MAX; host = host->next)
        addrs[count++] = host->addr;
    return count > 0 && answer_with(query, addrs, count);
}

/* RFC 6761, 6.3: also all names below it. IPv4 first, for most servers listen there alone. */
static bool answer_localhost(struct dns_query *query, struct str name)
{
    const struct addr loopback[] = {
        { .family = AF_INET, .at.v4.s_addr = htonl(INADDR_LOOPBACK) },
        { .family = AF_INET6, .at.v6 = IN6ADDR_LOOPBACK_INIT },
    };

    if (!str_is(name, STR("localhost")) && !str_ends_with(name, STR(".localhost")))
        return false;
    return answer_with(query, loopback, 2);
}

/* --- the form of names ----------------------------------------------------------------------- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
    return true;
}

/* NULL: well formed. A last label of digits would be an address that somebody mistyped ("1.2.3"),
 * or one in a form that only some programs read, behind which filters are evaded. */
static const char *fault_of(struct str name)
{
    struct str rest = name;
    struct str label;

    if (name.len == 0)
        return "a host name is empty";
    if (name.len > NAME_BYTES_MAX)
        return "a host name has at most 253 bytes";
    do {
        label = str_make(rest.at, str_find(rest, '.'));
        if (label.len == 0 || label.len > LABEL_BYTES_MAX)
            return "not a host name: each part has 1 to 63 bytes";
        for (size_t i = 0; i < label.len; i++)
            if ((unsigned char)label.at[i] >= 0x80)
                return "not a host name: letters beyond ASCII are written in their xn-- form";
            else if (!is_name_byte(label.at[i]))
                return "not a host name";
        rest = str_from(rest, label.len < rest.len ? label.len + 1 : rest.len);
    } while (label.at + label.len < name.at + name.len);
    return is_digits(label) ? "not an address, and a host name does not end in a number" : NULL;
}

/* In lower case. False: longer than any name. */
static bool copy_lower(char to[DNS_NAME_BYTES_MAX + 1], struct str host)
{
    if (host.len > DNS_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < host.len; i++)
        to[i] = host.at[i] >= 'A' && host.at[i] <= 'Z' ? (char)(host.at[i] | 0x20) : host.at[i];
    to[host.len] = '\0';
    return true;
}

/* A dot at the end says that no search domain is to be tried; the name is the same. */
static struct str without_dot(struct str name)
{
    return name.len > 0 && name.at[name.len - 1] == '.' ? str_make(name.at, name.len - 1) : name;
}

/* --- lookups --------------------------------------------------------------------------------- */

static void free_lookup(struct lookup *lookup)
{
    assert(list_is_empty(&lookup->questions));
    list_remove(&lookup->link);
    timer_stop(&lookup->limit, lookup->dns->loop);
    free(lookup->addrs);
    free(lookup);
}

/* Who asks for the name from now on asks anew. */
static void forget_name(struct lookup *lookup)
{
    if (!lookup->forgotten)
        map_remove(&lookup->dns->names, str_of(lookup->name));
    lookup->forgotten = true;
}

static void drop_kept(struct lookup *lookup)
{
    lookup->dns->kept_count--;
    forget_name(lookup);
    free_lookup(lookup);
}

static void drop_all_kept(struct dns *dns)
{
    list_each_safe(node, &dns->kept) drop_kept(container_of(node, struct lookup, link));
}

static void keep(struct lookup *lookup)
{
    struct dns *dns = lookup->dns;

    lookup->state = KEPT;
    list_append(&dns->kept, &lookup->link);
    if (++dns->kept_count > NAMES_KEPT_MAX)
        drop_kept(container_of(dns->kept.next, struct lookup, link));
}

static void tell_questions(struct lookup *lookup)
{
    struct list *node;

    while ((node = list_take_first(&lookup->questions))) {
        struct dns_query *query = container_of(node, struct dns_query, link);

        query->lookup = NULL;
        lookup->dns->waiting--;
        answer_from(query, lookup);
        query->done(query); /* may free the question, ask again, or cancel another */
    }
}

static void on_tell(struct later *later)
{
    struct dns  *dns = container_of(later, struct dns, tell);
    struct list *node;

    while (!list_is_empty(&dns->answered)) {
        node                  = dns->answered.next;
        struct lookup *lookup = container_of(node, struct lookup, link);

        tell_questions(lookup);
        list_remove(node);
        if (lookup->asked)
            lookup->state = LATE;
        else if (!lookup->forgotten && lookup->until_ms > loop_now_ms(dns->loop))
            keep(lookup);
        else {
            forget_name(lookup);
            free_lookup(lookup);
        }
    }
}

static uint64_t kept_ms(int rc, uint32_t ttl_s)
{
    if (rc == 0)
        return (uint64_t)ttl_s * MS_PER_S;
    return rc == ERR_NOT_FOUND ? MISSING_KEPT_MS : FAULT_KEPT_MS;
}

/* What it is to tell is set. */
static void finish(struct lookup *lookup, uint32_t ttl_s)
{
    struct dns *dns = lookup->dns;

    lookup->state    = ANSWERED;
    lookup->until_ms = loop_now_ms(dns->loop) + kept_ms(lookup->rc, ttl_s);
    timer_stop(&lookup->limit, dns->loop);
    list_remove(&lookup->link);
    list_append(&dns->answered, &lookup->link);
    dns->looking_count--;
    loop_later(dns->loop, &dns->tell);
}

static void take_answer(struct lookup *lookup, const struct dns_answer *answer)
{
    size_t bytes = answer->count * sizeof(answer->addrs[0]);

    lookup->rc     = answer->rc;
    lookup->reason = answer->reason;
    if (answer->rc < 0)
        return;
    lookup->addrs = malloc(bytes);
    if (!lookup->addrs) {
        lookup->rc     = ERR_MEMORY;
        lookup->reason = "out of memory";
        return;
    }
    memcpy(lookup->addrs, answer->addrs, bytes);
    lookup->count = answer->count;
}

static void on_answer(const struct dns_answer *answer, void *arg)
{
    struct lookup *lookup = arg;
    struct dns    *dns    = lookup->dns;

    lookup->asked = false;
    if (lookup->state == LOOKING) {
        take_answer(lookup, answer);
        finish(lookup, answer->ttl_s);
    } else if (lookup->state == LATE) {
        free_lookup(lookup);
    }
    if (!list_is_empty(&dns->retired))
        loop_later(dns->loop, &dns->sweep);
}

static void on_limit(struct timer *timer)
{
    struct lookup *lookup = container_of(timer, struct lookup, limit);

    forget_name(lookup);
    lookup->rc     = ERR_TIMEOUT;
    lookup->reason = "no answer from the name server";
    finish(lookup, 0);
}

/* --- servers --------------------------------------------------------------------------------- */

static void on_sweep(struct later *later)
{
    struct dns *dns = container_of(later, struct dns, sweep);

    list_each_safe(node, &dns->retired)
    {
        struct retired *retired = container_of(node, struct retired, link);

        if (dns_channel_open_count(retired->channel) > 0)
            continue;
        dns_channel_close(retired->channel);
        list_remove(&retired->link);
        free(retired);
    }
}

/* Those who wait for the old one's answer still get it. */
static void retire_channel(struct dns *dns)
{
    struct retired *retired = dns->channel ? calloc(1, sizeof(*retired)) : NULL;

    if (!retired)
        return; /* without memory the old one stays in use */
    retired->channel = dns->channel;
    dns->channel     = NULL;
    list_append(&dns->retired, &retired->link);
    loop_later(dns->loop, &dns->sweep);
}

static int ready_channel(struct dns *dns, struct err *err)
{
    const struct dns_channel_options options = {
        .servers     = dns->options.servers,
        .resolv_path = dns->options.resolv_path,
        .timeout_ms  = dns->options.timeout_ms,
        .tries       = dns->options.tries,
    };

    return dns->channel ? 0 : dns_channel_open(&dns->channel, dns->loop, &options, err);
}

/* Other servers may know other names, and may answer where the old ones do not. */
static void notice_resolv(struct dns *dns)
{
    if (!dns_watch_saw_change(&dns->resolv, loop_now_ms(dns->loop)))
        return;
    retire_channel(dns);
    drop_all_kept(dns);
    list_each(node, &dns->looking) forget_name(container_of(node, struct lookup, link));
}

/* --- questions ------------------------------------------------------------------------------- */

/* NULL: nobody asks for it, and nothing that holds is known. */
static struct lookup *find_lookup(struct dns *dns, struct str name)
{
    struct lookup *lookup = map_get(&dns->names, name);

    if (!lookup || lookup->state != KEPT)
        return lookup;
    if (lookup->until_ms <= loop_now_ms(dns->loop)) {
        drop_kept(lookup);
        return NULL;
    }
    list_remove(&lookup->link);
    list_append(&dns->kept, &lookup->link);
    return lookup;
}

static struct lookup *new_lookup(struct dns *dns, struct str name)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup) + name.len + 1);

    if (!lookup)
        return NULL;
    memcpy(lookup->name, name.at, name.len);
    lookup->dns   = dns;
    lookup->state = LOOKING;
    list_init(&lookup->questions);
    timer_init(&lookup->limit, on_limit);
    list_init(&lookup->link);
    if (!map_put(&dns->names, str_of(lookup->name), lookup, NULL)) {
        free(lookup);
        return NULL;
    }
    list_append(&dns->looking, &lookup->link);
    dns->looking_count++;
    return lookup;
}

/* Returns false: done() will be called. */
static bool join(struct dns_query *query, struct lookup *lookup)
{
    list_append(&lookup->questions, &query->link);
    query->lookup = lookup;
    lookup->dns->waiting++;
    return false;
}

static bool ask_servers(struct dns *dns, struct dns_query *query, struct str name)
{
    struct lookup *lookup;

    if (dns->looking_count >= LOOKUPS_MAX)
        return answer_fault(query, ERR_BUSY, name, "too many names are being looked up");
    query->rc = ready_channel(dns, &query->err);
    if (query->rc < 0)
        return true;
    lookup = new_lookup(dns, name);
    if (!lookup)
        return answer_fault(query, ERR_MEMORY, name, "out of memory");
    join(query, lookup);
    lookup->asked = true;
    timer_start(&lookup->limit, dns->loop, dns->options.limit_ms);
    dns_channel_ask(dns->channel, lookup->name, on_answer, lookup);
    return false;
}

static bool ask(struct dns *dns, struct dns_query *query, struct str name)
{
    struct lookup *lookup;

    notice_resolv(dns);
    lookup = find_lookup(dns, name);
    if (!lookup)
        return ask_servers(dns, query, name);
    return lookup->state == LOOKING ? join(query, lookup) : answer_from(query, lookup);
}

bool dns_resolve(struct dns *dns, struct dns_query *query, struct str host, uint16_t port)
{
    char        text[DNS_NAME_BYTES_MAX + 1];
    struct str  name, bare;
    const char *fault;

    list_init(&query->link);
    query->dns    = dns;
    query->lookup = NULL;
    query->port   = port;
    query->count  = 0;
    if (answer_literal(query, host))
        return true;
    if (!copy_lower(text, host))
        return answer_fault(query, ERR_INVALID, str_make(host.at, 32),
                            "a host name has at most 253 bytes");
    name  = str_make(text, host.len);
    bare  = without_dot(name);
    fault = fault_of(bare);
    if (fault)
        return answer_fault(query, ERR_INVALID, host, fault);
    if (answer_hosts(query, dns, bare) || answer_localhost(query, bare))
        return true;
    return ask(dns, query, name);
}

void dns_cancel(struct dns_query *query)
{
    if (!query->lookup)
        return;
    query->lookup = NULL;
    query->dns->waiting--;
    list_remove(&query->link);
}

unsigned dns_pending(const struct dns *dns)
{
    return dns->waiting;
}

/* --- life ------------------------------------------------------------------------------------ */

static bool copy_texts(struct dns *dns, const struct dns_options *options)
{
    const char *resolv = options->resolv_path ? options->resolv_path : "/etc/resolv.conf";

    dns->texts[0] = strdup(options->hosts_path ? options->hosts_path : "/etc/hosts");
    dns->texts[1] = strdup(resolv);
    dns->texts[2] = options->servers ? strdup(options->servers) : NULL;
    return dns->texts[0] && dns->texts[1] && (dns->texts[2] || !options->servers);
}

static void free_texts(struct dns *dns)
{
    for (size_t i = 0; i < sizeof(dns->texts) / sizeof(dns->texts[0]); i++)
        free(dns->texts[i]);
}

int dns_open(struct dns **out, struct loop *loop, const struct dns_options *options,
             struct err *err)
{
    static const struct dns_options defaults;
    struct dns                     *dns = calloc(1, sizeof(*dns));

    options = options ? options : &defaults;
    if (!dns || !copy_texts(dns, options)) {
        if (dns)
            free_texts(dns);
        free(dns);
        return err_set(err, ERR_MEMORY, "out of memory");
    }
    dns->loop    = loop;
    dns->options = (struct dns_options){
        .servers     = dns->texts[2],
        .hosts_path  = dns->texts[0],
        .resolv_path = dns->texts[1],
        .timeout_ms  = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS,
        .tries       = options->tries ? options->tries : TRIES,
        .limit_ms    = options->limit_ms ? options->limit_ms : LIMIT_MS,
    };
    dns_hosts_init(&dns->hosts, dns->options.hosts_path);
    dns->resolv.path = dns->options.resolv_path;
    map_init(&dns->names);
    list_init(&dns->looking);
    list_init(&dns->answered);
    list_init(&dns->kept);
    list_init(&dns->retired);
    later_init(&dns->tell, on_tell);
    later_init(&dns->sweep, on_sweep);
    *out = dns;
    return 0;
}

/* Closing a channel answers what it was asked, so each lookup ends up told. */
static void close_channels(struct dns *dns)
{
    dns_channel_close(dns->channel);
    dns->channel = NULL;
    list_each_safe(node, &dns->retired)
    {
        struct retired *retired = container_of(node, struct retired, link);

        dns_channel_close(retired->channel);
        free(retired);
    }
    list_init(&dns->retired);
}

void dns_close(struct dns *dns)
{
    if (!dns)
        return;
    assert(dns->waiting == 0);
    close_channels(dns);
    on_tell(&dns->tell);
    drop_all_kept(dns);
    later_cancel(&dns->tell);
    later_cancel(&dns->sweep);
    map_fini(&dns->names);
    dns_hosts_fini(&dns->hosts);
    free_texts(dns);
    free(dns);
}
