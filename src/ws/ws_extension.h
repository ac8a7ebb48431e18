/* ws/ws_extension.h - Sec-WebSocket-Extensions: its grammar (RFC 6455, 9.1), and what
 * permessage-deflate's parameters may be (RFC 7692, 7.1). */
#ifndef WS_WS_EXTENSION_H
#define WS_WS_EXTENSION_H

#include <stdbool.h>

#include "base/str.h"

enum { WS_BITS_MIN = 8, WS_BITS_MAX = 15 };

/* One offer, or one answer, of permessage-deflate. */
struct ws_pmd {
    bool     is_deflate; /* false: another extension */
    bool     is_sound;   /* no parameter is unknown, comes twice or has a bad value */
    bool     server_bits_given, client_bits_given;
    bool     server_alone, client_alone; /* ..._no_context_takeover */
    unsigned server_bits;                /* 0: no value was given */
    unsigned client_bits;
};

enum ws_extension {
    WS_EXTENSION_ONE,  /* *OUT is set */
    WS_EXTENSION_NONE, /* the list has ended */
    WS_EXTENSION_BAD,  /* it breaks the grammar: the handshake fails */
};

/* Takes the next extension off a field's value. */
enum ws_extension ws_extension_next(struct str *rest, struct ws_pmd *out);

#endif
