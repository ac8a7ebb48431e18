/* net/tls_ticket.h - what a session's ticket is: its state, sealed with a key that has a name. Private to
 * net/tls_*; the keys' life stands in net/tls.h. */
#ifndef NET_TLS_TICKET_H
#define NET_TLS_TICKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/crypto_seal.h"
#include "base/str.h"

struct tls_ticket_keys;

enum {
    TLS_TICKET_NAME_BYTES  = 16,
    TLS_TICKET_ADDED_BYTES = TLS_TICKET_NAME_BYTES + CRYPTO_SEAL_BYTES,
};

/* OUT holds state.len + TLS_TICKET_ADDED_BYTES. POLICY is proved too: a ticket is for servers with the same
 * one. 0, or ERR_MEMORY. */
int tls_ticket_seal(struct tls_ticket_keys *keys, struct str state, struct str policy,
                    void *out) MUST_CHECK;
/* OUT holds ticket.len; *LEN is what it came to. ERR_INVALID: not ours, or its key has gone. */
int tls_ticket_open(struct tls_ticket_keys *keys, struct str ticket, struct str policy, void *out,
                    size_t *len) MUST_CHECK;

uint32_t tls_ticket_lifetime(const struct tls_ticket_keys *keys); /* seconds */

#endif
