/* server/sockets.h - the listening sockets of the process: one for each worker's slot, inherited
 * from the supervisor after a restart, else opened here and handed up to it. */
#ifndef SERVER_SOCKETS_H
#define SERVER_SOCKETS_H

#include "net/listener.h"

struct config;
struct err;
struct supervisor_link;

enum { SOCKETS_SLOTS_MAX = 256 };

/* By which way a client comes in. */
enum door {
    DOOR_APP,
    DOOR_REDIRECT, /* plain HTTP that leads to HTTPS: the setting `redirect_http` */
    DOORS,
};

struct sockets {
    struct listener *listeners[DOORS]; /* owned; NULL: there is no such door */
};

int  sockets_open(struct sockets *sockets, const struct config *config, unsigned slots,
                  struct supervisor_link *link, struct err *err);
void sockets_close(struct sockets *sockets);

static inline bool sockets_has(const struct sockets *sockets, enum door door)
{
    return sockets->listeners[door] != NULL;
}

static inline const struct addr *sockets_addr(const struct sockets *sockets, enum door door)
{
    return listener_addr(sockets->listeners[door]);
}

static inline int sockets_fd(const struct sockets *sockets, enum door door, unsigned slot)
{
    return listener_fd(sockets->listeners[door], slot);
}

#endif
