#include "base/crypto_seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mbedtls/gcm.h>
#include <mbedtls/hkdf.h>
#include <mbedtls/platform_util.h>

#include "base/err.h"
#include "base/rand.h"

enum {
    VERSION     = 1,
    SALT_BYTES  = 24,
    TAG_BYTES   = 16,
    HEAD_BYTES  = 1 + SALT_BYTES,
    KEY_BYTES   = 32,
    NONCE_BYTES = 12,
};

_Static_assert(HEAD_BYTES + TAG_BYTES == CRYPTO_SEAL_BYTES, "what the header promises");

/* Keys of another version are other keys, so the version cannot be changed either. */
static const char INFO[] = "srv seal 1";

struct sealing {
    mbedtls_gcm_context gcm;
    unsigned char       keys[KEY_BYTES + NONCE_BYTES];
};

static const unsigned char *bytes_of(struct str s)
{
    return (const unsigned char *)(s.len ? s.at : "");
}

void crypto_hkdf(struct str secret, struct str salt, struct str info, void *out, size_t len)
{
    int rc = mbedtls_hkdf(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), bytes_of(salt), salt.len,
                          bytes_of(secret), secret.len, bytes_of(info), info.len, out, len);

    if (rc != 0) { /* no memory for a few pads, and no key to go on with */
        fprintf(stderr, "srv: mbedtls_hkdf: error -0x%04x\n", (unsigned)-rc);
        abort();
    }
}

static int begin(struct sealing *sealing, struct str secret, const char *salt)
{
    crypto_hkdf(secret, str_make(salt, SALT_BYTES), str_of(INFO), sealing->keys,
                sizeof(sealing->keys));
    mbedtls_gcm_init(&sealing->gcm);
    return mbedtls_gcm_setkey(&sealing->gcm, MBEDTLS_CIPHER_ID_AES, sealing->keys, KEY_BYTES * 8);
}

static void end(struct sealing *sealing)
{
    mbedtls_gcm_free(&sealing->gcm);
    mbedtls_platform_zeroize(sealing, sizeof(*sealing));
}

int crypto_seal(struct str secret, struct str text, struct str aad, void *out)
{
    struct sealing sealing;
    char          *head = out;
    unsigned char *body = (unsigned char *)out + HEAD_BYTES;
    int            rc;

    head[0] = VERSION;
    rand_bytes(head + 1, SALT_BYTES);
    rc = begin(&sealing, secret, head + 1);
    if (rc == 0)
        rc = mbedtls_gcm_crypt_and_tag(&sealing.gcm, MBEDTLS_GCM_ENCRYPT, text.len,
                                       sealing.keys + KEY_BYTES, NONCE_BYTES, bytes_of(aad),
                                       aad.len, bytes_of(text), body, TAG_BYTES, body + text.len);
    end(&sealing);
    return rc == 0 ? 0 : ERR_MEMORY;
}

int crypto_unseal(struct str secret, struct str sealed, struct str aad, void *out)
{
    struct sealing sealing;
    const char    *body = sealed.at + HEAD_BYTES;
    size_t         len;
    int            rc;

    if (sealed.len < CRYPTO_SEAL_BYTES || sealed.at[0] != VERSION)
        return ERR_INVALID;
    len = sealed.len - CRYPTO_SEAL_BYTES;
    rc  = begin(&sealing, secret, sealed.at + 1);
    if (rc == 0)
        rc = mbedtls_gcm_auth_decrypt(&sealing.gcm, len, sealing.keys + KEY_BYTES, NONCE_BYTES,
                                      bytes_of(aad), aad.len, (const unsigned char *)body + len,
                                      TAG_BYTES, (const unsigned char *)body, out);
    end(&sealing);
    return rc == 0 ? 0 : ERR_INVALID;
}
