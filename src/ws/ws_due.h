/* ws/ws_due.h - a time limit of a WebSocket's, which says itself what happens then. */
#ifndef WS_WS_DUE_H
#define WS_WS_DUE_H

#include "ev/timer.h"

struct ws_due {
    struct limit limit;
    void (*fn)(struct ws_due *due); /* the limit has stopped by then */
};

#endif
