/* http/h1_channel.h - a connection of HTTP/1.1 after an upgrade: its bytes are a channel's
 * (http/channel.h). Private to http/: conn_life.c lets it work, h1.c makes it. */
#ifndef HTTP_H1_CHANNEL_H
#define HTTP_H1_CHANNEL_H

#include "http/conn.h"

extern const struct conn_protocol h1_channel_protocol;

/* For CONN, whose exchange owns it until it has ended. */
struct channel *h1_channel_new(struct conn *conn);
/* The exchange has ended: CONN is the channel's, unless its user has let go already. */
void h1_channel_begin(struct conn *conn, struct channel *channel);
/* The connection dies. Frees it. */
void h1_channel_lost(struct channel *channel, enum gone_why why);

#endif
