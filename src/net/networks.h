/* net/networks.h - a list of networks as settings have it: "loopback,10.0.0.0/8", and who is in it. */
#ifndef NET_NETWORKS_H
#define NET_NETWORKS_H

#include <stdbool.h>

#include "base/cidr.h"
#include "base/str.h"

struct addr;

enum { NETWORKS_MAX = 64 };

struct networks {
    bool        unix_peers; /* who comes by a Unix socket is in it: he is on this machine */
    unsigned    count;
    struct cidr of[NETWORKS_MAX];
};

/* Addresses, CIDRs, "loopback" (Unix sockets too) and "private", parted by commas; "" is nobody.
 * False: *WRONG is the element that is none of these, or the first that finds no place. */
bool networks_parse(struct networks *out, struct str text, struct str *wrong);
bool networks_is_empty(const struct networks *networks);
bool networks_has(const struct networks *networks, const struct addr *peer);

#endif
