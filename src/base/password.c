#include "base/password.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <argon2.h>

#include "base/err.h"
#include "base/rand.h"

enum {
    SALT_BYTES = 16,
    HASH_BYTES = 32,
};

int password_hash(struct str password, char *text)
{
    unsigned char salt[SALT_BYTES];

    rand_bytes(salt, sizeof(salt));
    return argon2id_hash_encoded(PASSWORD_PASSES, PASSWORD_KIB, PASSWORD_LANES, password.at,
                                 password.len, salt, sizeof(salt), HASH_BYTES, text,
                                 PASSWORD_TEXT_MAX) == ARGON2_OK
               ? 0
               : ERR_MEMORY;
}

/* Before the library allocates what the text asks for. */
static bool is_within_bounds(const char *text)
{
    unsigned version, kib, passes, lanes;
    int      end = 0;

    if (sscanf(text, "$argon2id$v=%2u$m=%9u,t=%9u,p=%9u$%n", &version, &kib, &passes, &lanes,
               &end) != 4 ||
        end == 0)
        return false;
    return kib <= PASSWORD_KIB_MAX && passes <= PASSWORD_PASSES_MAX && lanes <= PASSWORD_LANES_MAX;
}

enum password_verdict password_verify(struct str password, struct str text)
{
    char copy[PASSWORD_TEXT_MAX];

    if (text.len >= sizeof(copy) || memchr(text.at, 0, text.len))
        return PASSWORD_NO_HASH;
    memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    if (!is_within_bounds(copy))
        return PASSWORD_NO_HASH;
    switch (argon2id_verify(copy, password.at, password.len)) {
    case ARGON2_OK: return PASSWORD_RIGHT;
    case ARGON2_VERIFY_MISMATCH: return PASSWORD_WRONG;
    case ARGON2_MEMORY_ALLOCATION_ERROR: return PASSWORD_NO_MEMORY;
    default: return PASSWORD_NO_HASH;
    }
}
