/* http/h1_wire.h - the wire's share of an exchange in HTTP/1: between h1.c, which moves it, and
 * h1_wire.c, which does what its work asks for. */
#ifndef HTTP_H1_WIRE_H
#define HTTP_H1_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/exchange.h"
#include "http/h1_parse.h"
#include "http/respond.h"

struct conn;

enum {
    H1_DRAIN_BYTES_MAX = 64 * 1024, /* of a body that nobody wants: more, and the connection ends */
};

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
};

static inline struct h1_exchange *h1_of(const struct exchange *ex)
{
    return ex->wire_data;
}

extern const struct exchange_wire h1_wire;

/* Nothing behind a broken body can be read as HTTP, so the connection ends with the answer. */
void h1_break_body(struct exchange *ex, unsigned short status, const char *reason);
/* Whether more is announced than the exchange takes. */
bool h1_is_too_large(const struct exchange *ex);

#endif
