#include "server/sockets.h"

#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "net/listener.h"
#include "server/config.h"
#include "server/place.h"
#include "server/supervisor.h"

static struct place at_setting(const struct config *config, const char *name)
{
    return place_of(config_origin(config, name), name);
}

/* What is wrong with a setting is told with where it came from. */
static int blame(const struct config *config, const char *name, int rc, const struct err *why,
                 struct err *err)
{
    return rc == 0 ? 0 : err_set(err, rc, "%s: %s", at_setting(config, name).text, why->text);
}

static int app_addr(const struct config *config, struct addr *out, struct err *err)
{
    struct err why = { 0 };

    if (*config->unix_path)
        return blame(config, "unix", addr_parse_path(out, config->unix_path, &why), &why, err);
    return blame(config, "host", addr_parse_host(out, config->host, (uint16_t)config->port, &why),
                 &why, err);
}

static int redirect_addr(const struct config *config, struct addr *out, struct err *err)
{
    struct err why = { 0 };

    if (*config->unix_path)
        return err_set(err, ERR_INVALID,
                       "%s: it leads to a port, and there is none with the setting unix",
                       at_setting(config, "redirect_http").text);
    return blame(config, "host",
                 addr_parse_host(out, config->host, (uint16_t)config->redirect_http, &why), &why,
                 err);
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

/* NAME is the address as it was asked for, so that port 0 stays 0. */
static int open_at(struct listener **out, const struct addr *at, const char *name, unsigned slots,
                   struct supervisor_link *link, struct err *err)
{
    int      held[SOCKETS_SLOTS_MAX];
    unsigned held_count = held_sockets(link, name, slots, held);
    int      rc;

    if (held_count)
        rc = listener_reopen(out, at, held, held_count, slots, err);
    else
        rc = listener_open(out, at, slots, err);
    for (unsigned slot = held_count; rc == 0 && slot < slots; slot++)
        rc = supervisor_hold(link, name, slot, listener_fd(*out, slot), err);
    return rc;
}

static int open_app(struct sockets *sockets, const struct config *config, unsigned slots,
                    struct supervisor_link *link, struct err *err)
{
    struct addr at;
    char        name[ADDR_TEXT_BYTES];
    int         rc = app_addr(config, &at, err);

    return rc == 0 ? open_at(&sockets->listeners[DOOR_APP], &at, addr_format(&at, name), slots,
                             link, err)
                   : rc;
}

/* Both doors may have asked for port 0, so this one's name says which it is. */
static int open_redirect(struct sockets *sockets, const struct config *config, unsigned slots,
                         struct supervisor_link *link, struct err *err)
{
    struct addr at;
    char        text[ADDR_TEXT_BYTES], name[ADDR_TEXT_BYTES + 16];
    struct err  why = { 0 };
    int         rc  = redirect_addr(config, &at, err);

    if (rc != 0)
        return rc;
    snprintf(name, sizeof(name), "redirect %s", addr_format(&at, text));
    rc = open_at(&sockets->listeners[DOOR_REDIRECT], &at, name, slots, link, &why);
    return blame(config, "redirect_http", rc, &why, err);
}

int sockets_open(struct sockets *sockets, const struct config *config, unsigned slots,
                 struct supervisor_link *link, struct err *err)
{
    int rc;

    *sockets = (struct sockets){ { NULL } };
    rc       = open_app(sockets, config, slots, link, err);
    if (rc == 0 && config->redirect_http != CONFIG_NO_PORT)
        rc = open_redirect(sockets, config, slots, link, err);
    return rc;
}

void sockets_close(struct sockets *sockets)
{
    for (int door = 0; door < DOORS; door++) {
        if (sockets->listeners[door])
            listener_withdraw(sockets->listeners[door]);
        sockets->listeners[door] = NULL;
    }
}
