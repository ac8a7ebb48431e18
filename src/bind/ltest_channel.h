/* bind/ltest_channel.h - two channels in memory, each the other's wire: what srv.test makes of an upgrade.
 *
 * What one side writes the other reads, in a later turn of the loop; 64 KiB wait between them at most. */
#ifndef BIND_LTEST_CHANNEL_H
#define BIND_LTEST_CHANNEL_H

#include <stdbool.h>

struct channel;
struct loop;

/* Each is let go by its user, as any channel. False: no memory. */
bool ltest_channel_pair(struct loop *loop, struct channel **one, struct channel **other);

#endif
