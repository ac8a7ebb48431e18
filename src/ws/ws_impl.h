/* ws/ws_impl.h - a socket of WebSocket as its files see it: ws_say (what it sends), ws_end (how it
 * ends), ws_read (what comes), ws (its events, and what its user calls). */
#ifndef WS_WS_IMPL_H
#define WS_WS_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ws/ws_output.h"
#include "ws/ws_reader.h"
#include "ws/ws_shared.h"
#include "ws/ws_user.h"

struct channel;

enum ws_state {
    WS_OPEN,
    WS_CLOSING, /* our close frame has gone, the peer's is awaited; its messages are passed over */
    WS_ENDING,  /* all is said: what waits goes out, and the channel ends */
    WS_OVER,    /* the channel was let go */
};

struct ws {
    struct ws_shared     *shared;  /* borrowed */
    struct channel       *channel; /* NULL: over */
    const struct ws_user *user;
    void                 *arg;

    struct ws_rules   rules;
    struct ws_reader *reader; /* lent; NULL at rest */
    struct ws_output  output;
    uint64_t          buffer;
    size_t            fragment;
    size_t            deflate_max; /* longer messages go plain: the peer's window is small */

    struct ws_due   due;  /* the next heartbeat, or the end of the closing handshake */
    struct ws_beat *beat; /* NULL: no heartbeat */
    struct ws_beat *pace; /* of messages under way; NULL: no limit */

    char          *reason; /* owned, or NULL */
    unsigned short code;   /* for on_closed(), once it closes */
    unsigned char  reason_len;

    unsigned state : 2;
    bool     client : 1;
    bool     in_event : 1;   /* it is not freed before that has run to its end */
    bool     reading : 1;    /* and that is on_bytes(), which goes on by itself */
    bool     busy : 1;       /* a message is handled: the next one waits */
    bool     held : 1;       /* not read until the peer takes what waits for it */
    bool     wants_room : 1; /* a send met WAIT */
    bool     pinged : 1;     /* nothing has come since our ping */
    bool     waits_end : 1;  /* a client's lets the server end first (RFC 6455, 7.1.1) */
    bool     failed : 1;     /* no memory for what it had to send */
};

#endif
