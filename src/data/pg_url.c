#include "data/pg_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "data/pg_lib.h"
#include "net/addr.h"

enum {
    PARAMETERS_MAX = 96, /* libpq 17 knows 50 */
    LIST_BYTES_MAX = 8192,
    DEFAULT_PORT   = 5432,
    PORT_MAX       = 65535,
};

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        if (strcmp(option->keyword, keyword) == 0)
            return option->val && option->val[0] ? option->val : NULL;
    return NULL;
}

/* PGHOST and the like where the URL leaves it out. */
static const char *value_or_default(const struct pg_url *url, const PQconninfoOption *defaults,
                                    const char *keyword)
{
    const char *given = value_of(url->options, keyword);

    return given ? given : value_of(defaults, keyword);
}

/* "@abstract" is a Unix socket too. */
static bool is_name(const char *host)
{
    return host && host[0] != '/' && host[0] != '@';
}

static int note_host(struct pg_url *url, const PQconninfoOption *defaults, struct err *err)
{
    const char *host = value_or_default(url, defaults, "host");
    const char *port = value_or_default(url, defaults, "port");

    uint64_t number = DEFAULT_PORT;

    if (port && !strchr(port, ',') && (!str_to_u64(str_of(port), PORT_MAX, &number) || number == 0))
        return err_set(err, ERR_INVALID, "has no port %s", port);
    url->port = (uint16_t)number;
    if (value_or_default(url, defaults, "hostaddr") || !is_name(host))
        return 0;
    if (strchr(host, ','))
        return err_set(err, ERR_INVALID, "names more than one host");
    url->host = strdup(host);
    return url->host ? 0 : err_set(err, ERR_MEMORY, "no memory");
}

static void trim_end(char *text)
{
    size_t len = strlen(text);

    while (len && text[len - 1] == '\n')
        text[--len] = '\0';
}

int pg_url_parse(struct pg_url *out, const struct pg_lib *lib, const char *text, struct err *err)
{
    char             *message = NULL;
    PQconninfoOption *defaults;
    int               rc;

    *out         = (struct pg_url){ .lib = lib };
    out->options = lib->conninfoParse(text, &message);
    if (!out->options) {
        if (message)
            trim_end(message);
        err_set(err, ERR_INVALID, "%s", message ? message : "no memory");
        lib->freemem(message);
        return ERR_INVALID;
    }
    defaults = lib->conndefaults();
    rc       = note_host(out, defaults, err);
    lib->conninfoFree(defaults);
    if (rc != 0)
        pg_url_fini(out);
    return rc;
}

void pg_url_fini(struct pg_url *url)
{
    if (url->options)
        url->lib->conninfoFree(url->options);
    free(url->host);
    *url = (struct pg_url){ .options = NULL };
}

struct parameters {
    const char *names[PARAMETERS_MAX + 1];
    const char *values[PARAMETERS_MAX + 1];
    unsigned    count;
};

static void add_parameter(struct parameters *parameters, const char *name, const char *value)
{
    if (parameters->count == PARAMETERS_MAX)
        return;
    parameters->names[parameters->count]    = name;
    parameters->values[parameters->count++] = value;
}

static bool is_ours(const struct pg_url *url, const char *keyword)
{
    if (strcmp(keyword, "gssencmode") == 0 || strcmp(keyword, "client_encoding") == 0)
        return true;
    return url->host && (strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
                         strcmp(keyword, "port") == 0);
}

static void add_list(struct buf *list, unsigned i, const char *text)
{
    if (i > 0)
        buf_add_byte(list, ',');
    buf_add_str(list, str_of(text));
}

/* As many hosts as addresses: the name is what a certificate is looked at for. */
static void add_hosts(struct parameters *parameters, const struct pg_url *url,
                      const struct addr *addrs, unsigned count, struct buf lists[2])
{
    char text[ADDR_TEXT_BYTES];

    if (!url->host)
        return;
    for (unsigned i = 0; i < count; i++) {
        add_list(&lists[0], i, url->host);
        add_list(&lists[1], i, addr_format_host(&addrs[i], text));
    }
    buf_add_byte(&lists[0], '\0');
    buf_add_byte(&lists[1], '\0');
    add_parameter(parameters, "host", lists[0].at);
    add_parameter(parameters, "hostaddr", lists[1].at);
}

PGconn *pg_url_connect(const struct pg_url *url, const struct addr *addrs, unsigned count)
{
    struct parameters parameters = { .count = 0 };
    struct buf        lists[2];
    char              port[8];
    PGconn           *pq;
    unsigned          hosts = count < PG_URL_HOSTS_MAX ? count : PG_URL_HOSTS_MAX;

    snprintf(port, sizeof(port), "%u", url->port);
    buf_init(&lists[0], LIST_BYTES_MAX);
    buf_init(&lists[1], LIST_BYTES_MAX);
    /* Of a name given twice the last counts: the URL's. A listener would wait two hours for a server
     * whose machine has gone. */
    add_parameter(&parameters, "keepalives_idle", "60");
    add_parameter(&parameters, "keepalives_interval", "10");
    add_parameter(&parameters, "keepalives_count", "3");
    for (const PQconninfoOption *option = url->options; option->keyword; option++)
        if (option->val && !is_ours(url, option->keyword))
            add_parameter(&parameters, option->keyword, option->val);
    add_hosts(&parameters, url, addrs, hosts, lists);
    if (url->host)
        add_parameter(&parameters, "port", port);
    add_parameter(&parameters, "gssencmode", "disable"); /* it would look up names, and wait */
    add_parameter(&parameters, "client_encoding", "UTF8");
    add_parameter(&parameters, "fallback_application_name", "srv");
    pq = url->lib->connectStartParams(parameters.names, parameters.values, 0);
    buf_fini(&lists[0]);
    buf_fini(&lists[1]);
    return pq;
}
