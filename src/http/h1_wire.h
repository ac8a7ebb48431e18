/* http/h1_wire.h - the wire's share of an exchange in HTTP/1: between h1.c, which moves it, and
 * h1_wire.c, which does what its work asks for. */
#ifndef HTTP_H1_WIRE_H
#define HTTP_H1_WIRE_H

#include <stdbool.h>

#include "http/h1_exchange.h"

enum {
    H1_DRAIN_BYTES_MAX = 64 * 1024, /* of a body that nobody wants: more, and the connection ends */
};

extern const struct exchange_wire h1_wire;

/* Nothing behind a broken body can be read as HTTP, so the connection ends with the answer. */
void h1_break_body(struct exchange *ex, unsigned short status, const char *reason);
/* Whether more is announced than the exchange takes. */
bool h1_is_too_large(const struct exchange *ex);

#endif
