/* http/h1_exchange.h - what HTTP/1 keeps for an exchange. */
#ifndef HTTP_H1_EXCHANGE_H
#define HTTP_H1_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/exchange.h"
#include "http/h1_parse.h"
#include "http/respond.h"

struct channel;
struct conn;

/* In the exchange's arena. */
struct h1_exchange {
    struct exchange     *ex;
    struct conn         *conn;
    struct h1_exchange  *next; /* in output->answered */
    uint64_t             mark; /* position in the output at which the answer ends */
    struct h1_body       body;
    uint64_t             left; /* RESPOND_LENGTH: body bytes still to come from the work */
    uint64_t             drained;
    uint64_t             progress_at; /* body_bytes when the limit last started anew */
    size_t               unseen; /* bytes of a body that is not sent, since its writer waited */
    enum respond_framing framing;
    bool                 wants_room : 1; /* a body() met WAIT */
    bool                 continued : 1;  /* 100 Continue was sent, or is not waited for */
    bool                 told_sent : 1;
    struct channel *channel; /* the answer was an upgrade to this; owned until the exchange ends */
};

static inline struct h1_exchange *h1_of(const struct exchange *ex)
{
    return ex->wire_data;
}

#endif
