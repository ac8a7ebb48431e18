#include "server/sockets.h"

#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "net/listener.h"
#include "server/config.h"
#include "server/supervisor.h"

/* Where to listen. What is wrong with it is told with the setting and where that came from. */
static int wanted_addr(const struct config *config, struct addr *out, struct err *err)
{
    const char *name = *config->unix_path ? "unix" : "host";
    struct err  why  = { 0 };
    int         rc;

    if (*config->unix_path)
        rc = addr_parse_path(out, config->unix_path, &why);
    else
        rc = addr_parse_host(out, config->host, (uint16_t)config->port, &why);
    if (rc != 0)
        err_set(err, rc, "%s: %s: %s", config_origin(config, name), name, why.text);
    return rc;
}

/* The descriptors that the last server has left, as far as they go: at most SLOTS. */
static unsigned held_sockets(const struct supervisor_link *link, const char *name, unsigned slots,
                             int *fds)
{
    unsigned count = 0;

    while (count < slots && (fds[count] = supervisor_held(link, name, count)) >= 0)
        count++;
    return count;
}

int sockets_open(struct sockets *sockets, const struct config *config, unsigned slots,
                 struct supervisor_link *link, struct err *err)
{
    struct addr at;
    char        name[ADDR_TEXT_BYTES]; /* as it was asked for: port 0 stays 0 */
    int         held[SOCKETS_SLOTS_MAX];
    unsigned    held_count;
    int         rc = wanted_addr(config, &at, err);

    sockets->listener = NULL;
    if (rc != 0)
        return rc;
    addr_format(&at, name);
    held_count = held_sockets(link, name, slots, held);
    if (held_count)
        rc = listener_reopen(&sockets->listener, &at, held, held_count, slots, err);
    else
        rc = listener_open(&sockets->listener, &at, slots, err);
    for (unsigned slot = held_count; rc == 0 && slot < slots; slot++)
        rc = supervisor_hold(link, name, slot, listener_fd(sockets->listener, slot), err);
    return rc;
}

void sockets_close(struct sockets *sockets)
{
    if (sockets->listener)
        listener_withdraw(sockets->listener);
    sockets->listener = NULL;
}
