/* client/client_bridge.h - the way through a proxy that is asked by https: what goes into the near end of a pair of
 * sockets comes to the proxy by TLS, and back.
 *
 * So TLS to a server lies in TLS to the proxy, and neither net/tls nor who has the near end knows of the other. It
 * costs two descriptors and a copy each way, for these connections alone. */
#ifndef CLIENT_CLIENT_BRIDGE_H
#define CLIENT_CLIENT_BRIDGE_H

#include "client/client_tls.h"

struct client_bridge;
struct loop;

/* FD, connected to the proxy, is taken, also on failure: NULL. *NEAR is the caller's. */
struct client_bridge *client_bridge_open(struct loop *loop, struct tls_clients *clients,
                                         const struct client_tls *tls, int fd, int *near,
                                         struct err *err);
/* After the near end. NULL is fine. */
void client_bridge_close(struct client_bridge *bridge);

/* Why there is no TLS to the proxy, or none any more; "" while all is well, and for NULL. */
const char *client_bridge_fault(const struct client_bridge *bridge);

#endif
