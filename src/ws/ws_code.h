/* ws/ws_code.h - what all parts of WebSocket name: kinds of messages, results of sending, codes of
 * closing (RFC 6455, 7.4). */
#ifndef WS_WS_CODE_H
#define WS_WS_CODE_H

#include <stdbool.h>

enum ws_kind { WS_TEXT, WS_BINARY };

/* What sending returns besides 0. Nothing was taken then. */
enum {
    WS_WAIT     = -1, /* the buffer is full: on_room() tells when */
    WS_GONE     = -2, /* it closes or has gone */
    WS_NOT_TEXT = -3, /* a text that is not UTF-8, which no peer would take */
    WS_MEMORY   = -4,
};

/* RFC 6455, 7.4.1, and IANA's registry. */
enum ws_code {
    WS_CODE_NORMAL      = 1000,
    WS_CODE_GOING_AWAY  = 1001,
    WS_CODE_PROTOCOL    = 1002,
    WS_CODE_UNSUPPORTED = 1003,
    WS_CODE_NONE        = 1005, /* never sent: the peer's close frame had no code */
    WS_CODE_ABNORMAL    = 1006, /* never sent: it ended without a close frame */
    WS_CODE_BAD_DATA    = 1007,
    WS_CODE_POLICY      = 1008,
    WS_CODE_TOO_LARGE   = 1009,
    WS_CODE_EXTENSION   = 1010,
    WS_CODE_INTERNAL    = 1011,
    WS_CODE_RESTART     = 1012,
    WS_CODE_TRY_LATER   = 1013,
};

enum { WS_REASON_BYTES_MAX = 123 }; /* of a close frame, beside its code */

/* In a close frame, by either side: 1000-1003, 1007-1014 and 3000-4999. */
static inline bool ws_code_may_be_sent(unsigned code)
{
    if (code >= 3000)
        return code <= 4999;
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

#endif
