/* Three keys, newest first: with a new one every half a lifetime, the third is as old as a ticket may
 * get. All workers share them, so a client may come back to any. */
#include "net/tls_ticket.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <mbedtls/platform_util.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rand.h"
#include "net/tls.h"

enum { KEYS = 3 };

struct key {
    char     name[TLS_TICKET_NAME_BYTES]; /* random: tells nothing */
    char     secret[CRYPTO_SECRET_BYTES_MIN];
    uint64_t made_ns;
};

struct tls_ticket_keys {
    pthread_mutex_t lock; /* of `keys`; held for a copy, never while something is sealed */
    struct key      keys[KEYS];
    uint32_t        lifetime_s;
};

static void make_key(struct key *key)
{
    rand_bytes(key->name, sizeof(key->name));
    rand_bytes(key->secret, sizeof(key->secret));
    key->made_ns = clock_mono_ns();
}

struct tls_ticket_keys *tls_ticket_keys_new(uint32_t lifetime_s)
{
    struct tls_ticket_keys *keys = calloc(1, sizeof(*keys));

    if (!keys)
        return NULL;
    pthread_mutex_init(&keys->lock, NULL);
    keys->lifetime_s = lifetime_s ? lifetime_s : TLS_TICKET_LIFETIME;
    for (unsigned i = 0; i < KEYS; i++)
        make_key(&keys->keys[i]);
    return keys;
}

void tls_ticket_keys_free(struct tls_ticket_keys *keys)
{
    if (!keys)
        return;
    pthread_mutex_destroy(&keys->lock);
    mbedtls_platform_zeroize(keys, sizeof(*keys));
    free(keys);
}

static void rotate(struct tls_ticket_keys *keys)
{
    memmove(&keys->keys[1], &keys->keys[0], (KEYS - 1) * sizeof(struct key));
    make_key(&keys->keys[0]);
}

void tls_ticket_keys_rotate(struct tls_ticket_keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    rotate(keys);
    pthread_mutex_unlock(&keys->lock);
}

static uint64_t lifetime_ns(const struct tls_ticket_keys *keys)
{
    return (uint64_t)keys->lifetime_s * NS_PER_S;
}

static void copy_newest(struct tls_ticket_keys *keys, struct key *out)
{
    pthread_mutex_lock(&keys->lock);
    if (clock_mono_ns() - keys->keys[0].made_ns > lifetime_ns(keys) / 2)
        rotate(keys);
    *out = keys->keys[0];
    pthread_mutex_unlock(&keys->lock);
}

/* A key that was replaced a lifetime ago has sealed nothing that is still good. */
static bool copy_named(struct tls_ticket_keys *keys, const char *name, struct key *out)
{
    bool found = false;

    pthread_mutex_lock(&keys->lock);
    for (unsigned i = 0; i < KEYS && !found; i++) {
        found = memcmp(keys->keys[i].name, name, TLS_TICKET_NAME_BYTES) == 0;
        if (found && i > 0)
            found = clock_mono_ns() - keys->keys[i - 1].made_ns <= lifetime_ns(keys);
        if (found)
            *out = keys->keys[i];
    }
    pthread_mutex_unlock(&keys->lock);
    return found;
}

int tls_ticket_seal(struct tls_ticket_keys *keys, struct str state, struct str policy, void *out)
{
    struct key key;
    int        rc;

    copy_newest(keys, &key);
    memcpy(out, key.name, sizeof(key.name));
    rc = crypto_seal(str_make(key.secret, sizeof(key.secret)), state, policy,
                     (char *)out + TLS_TICKET_NAME_BYTES);
    mbedtls_platform_zeroize(&key, sizeof(key));
    return rc;
}

int tls_ticket_open(struct tls_ticket_keys *keys, struct str ticket, struct str policy, void *out,
                    size_t *len)
{
    struct key key;
    int        rc;

    if (ticket.len < TLS_TICKET_ADDED_BYTES || !copy_named(keys, ticket.at, &key))
        return ERR_INVALID;
    *len = ticket.len - TLS_TICKET_ADDED_BYTES;
    rc   = crypto_unseal(str_make(key.secret, sizeof(key.secret)),
                         str_from(ticket, TLS_TICKET_NAME_BYTES), policy, out);
    mbedtls_platform_zeroize(&key, sizeof(key));
    return rc;
}

uint32_t tls_ticket_lifetime(const struct tls_ticket_keys *keys)
{
    return keys->lifetime_s;
}
