/* links: srv_net
 *
 * Any text is a hosts file; a name that is found has addresses, no more than are kept, none twice. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check(const struct dns_host *host)
{
    unsigned count = 0;

    for (; host; host = host->next) {
        if (++count > DNS_HOST_ADDRS_MAX || host->addr.port != 0)
            abort();
        if (host->addr.family != AF_INET && host->addr.family != AF_INET6)
            abort();
        for (const struct dns_host *other = host->next; other; other = other->next)
            if (addr_is_equal(&host->addr, &other->addr))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct dns_hosts       hosts;
    const struct dns_host *host;
    size_t                 cursor = 0;
    char                  *text   = malloc(len + 1);

    if (!text)
        return 0;
    if (len > 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
    dns_hosts_init(&hosts, "/nonexistent");
    dns_hosts_take(&hosts, text);
    while ((host = map_next(&hosts.names, &cursor, NULL)))
        check(host);
    dns_hosts_fini(&hosts);
    return 0;
}
