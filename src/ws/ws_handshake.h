/* ws/ws_handshake.h - the opening handshake of a WebSocket, both sides, as pure functions.
 *
 * RFC 6455, 4; RFC 7692, 7.1; over HTTP/2 RFC 8441, 5. What is negotiated of permessage-deflate is
 * always without context takeover in either direction, so that no socket keeps a window. */
#ifndef WS_WS_HANDSHAKE_H
#define WS_WS_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "http/message.h"

enum {
    WS_KEY_LEN           = 24, /* 16 bytes in base64 */
    WS_ACCEPT_LEN        = 28, /* SHA-1 in base64 */
    WS_EXTENSION_BYTES   = 128,
    WS_PROTOCOLS_MAX     = 32, /* that a client may offer */
    WS_ANSWER_FIELDS_MAX = 3,
    WS_ASK_FIELDS_MAX    = 6,
};

/* What both sides agreed on: what ws/ws.h's options want to know. */
struct ws_deflate {
    bool     on;
    unsigned bits; /* the window that the other side inflates with: 8 to 15 */
};

/* --- the server's side -------------------------------------------------------------------------------- */

/* What a client asks for. Points into the request. */
struct ws_offer {
    const struct request *request;
    const char           *reason;     /* of a refusal, a sentence for the client */
    struct ws_deflate     deflate;    /* what we may agree to; not `on`: no offer that we take */
    bool                  names_bits; /* the answer must say server_max_window_bits */
    char                  accept[WS_ACCEPT_LEN]; /* HTTP/1 */
    char                  extension[WS_EXTENSION_BYTES];
};

/* 0, or the status of the refusal: 400; 405, with "Allow: GET"; 426, with WS_VERSION_FIELD, and
 * "Upgrade: websocket" in HTTP/1.1. */
unsigned ws_accepts(const struct request *request, struct ws_offer *offer);

#define WS_VERSION_FIELD ((struct field){ STR("Sec-WebSocket-Version"), STR("13"), FIELD_OTHER })

/* The first protocol of the client's list that OURS has; empty: none. */
struct str ws_choose_protocol(const struct ws_offer *offer, const struct str *ours, size_t count);

/* Fields of the answer (101, or 200 in HTTP/2) beside Upgrade and Connection, which are the wire's:
 * how many. PROTOCOL: empty for none. DEFLATE: take the client's offer of it; without one, it is not
 * taken, and offer->deflate.on says what is agreed from then on. The values point into OFFER and
 * PROTOCOL. */
unsigned ws_answer_fields(struct ws_offer *offer, struct str protocol, bool deflate,
                          struct field fields[WS_ANSWER_FIELDS_MAX]);

/* --- the client's side ------------------------------------------------------------------------------- */

struct ws_ask {
    char       key[WS_KEY_LEN];
    struct str protocols; /* as in Sec-WebSocket-Protocol: "chat, superchat"; empty: none */
    bool       deflate;
};

/* Makes a key. PROTOCOLS is borrowed. */
void ws_ask_init(struct ws_ask *ask, struct str protocols, bool deflate);

/* Fields of a GET in HTTP/1.1, beside Host: how many. The values point into ASK. */
unsigned ws_ask_fields(const struct ws_ask *ask, struct field fields[WS_ASK_FIELDS_MAX]);

struct ws_agreed {
    struct str        protocol; /* points into the answer; empty: none */
    struct ws_deflate deflate;
    const char       *reason; /* what is wrong with the answer */
};

/* The answer's status and fields, names in lower case. False: it is no WebSocket, see `reason`. */
bool ws_check_answer(const struct ws_ask *ask, unsigned status, const struct field *fields,
                     unsigned count, struct ws_agreed *agreed);

#endif
