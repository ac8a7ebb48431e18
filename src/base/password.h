/* base/password.h - argon2id, which makes guessing passwords cost memory; libargon2's one home.
 *
 * A hash takes 20-50 ms and PASSWORD_KIB of memory: on a thread of the pool, whose number bounds
 * both. The parameters are OWASP's (19 MiB, 2 passes, 1 lane); a hash names its own, so they may
 * change later. Any thread. */
#ifndef BASE_PASSWORD_H
#define BASE_PASSWORD_H

#include "base/compiler.h"
#include "base/str.h"

enum {
    PASSWORD_KIB       = 19 * 1024,
    PASSWORD_PASSES    = 2,
    PASSWORD_LANES     = 1,
    PASSWORD_BYTES_MAX = 4096, /* of a password */
    PASSWORD_TEXT_MAX  = 512,  /* of a hash, with its NUL */

    /* What a foreign hash may ask of us. */
    PASSWORD_KIB_MAX    = 256 * 1024,
    PASSWORD_PASSES_MAX = 32,
    PASSWORD_LANES_MAX  = 16,
};

/* Writes "$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH" and a NUL to TEXT, which holds
 * PASSWORD_TEXT_MAX. 0, or ERR_MEMORY. */
int password_hash(struct str password, char *text) MUST_CHECK;

enum password_verdict {
    PASSWORD_RIGHT,
    PASSWORD_WRONG,
    PASSWORD_NO_HASH, /* TEXT is no argon2id hash, or asks for more than the bounds */
    PASSWORD_NO_MEMORY,
};
enum password_verdict password_verify(struct str password, struct str text) MUST_CHECK;

#endif
