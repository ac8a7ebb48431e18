/* server/sockets.h - the listening sockets of the process: one for each worker's slot, inherited
 * from the supervisor after a restart, else opened here and handed up to it. */
#ifndef SERVER_SOCKETS_H
#define SERVER_SOCKETS_H

#include "net/listener.h"

struct config;
struct err;
struct supervisor_link;

enum { SOCKETS_SLOTS_MAX = 256 };

struct sockets {
    struct listener *listener; /* owned */
};

int  sockets_open(struct sockets *sockets, const struct config *config, unsigned slots,
                  struct supervisor_link *link, struct err *err);
void sockets_close(struct sockets *sockets);

static inline const struct addr *sockets_addr(const struct sockets *sockets)
{
    return listener_addr(sockets->listener);
}

static inline int sockets_fd(const struct sockets *sockets, unsigned slot)
{
    return listener_fd(sockets->listener, slot);
}

#endif
