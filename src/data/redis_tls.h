/* data/redis_tls.h - TLS of the connections to one Redis (rediss://): how the server is verified and what it is
 * shown, as the URL says. The files are read for the first connection, and anew after a handshake that failed.
 *
 * For data/redis*.c; belongs to the loop's thread. */
#ifndef DATA_REDIS_TLS_H
#define DATA_REDIS_TLS_H

#include "base/compiler.h"

struct err;
struct redis_target;
struct stream;
struct tls;
struct tls_client;

struct redis_tls {
    struct tls                *lent; /* NULL: there is none to be had */
    const struct redis_target *target;
    struct tls_client         *client; /* NULL: not read yet */
};

/* Both are borrowed. */
void redis_tls_init(struct redis_tls *tls, struct tls *lent, const struct redis_target *target);
void redis_tls_fini(struct redis_tls *tls);

/* STREAM speaks TLS from its first byte on. 0, or an error that names the file that is wrong. */
int redis_tls_begin(struct redis_tls *tls, struct stream *stream, struct err *err) MUST_CHECK;
/* The files may have changed. Connections keep what they need. */
void redis_tls_forget(struct redis_tls *tls);

#endif
