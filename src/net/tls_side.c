#include "net/tls_side.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "net/tls_lib.h"

static int copy_alpn(struct tls_side *side, const char *const *alpn, struct err *err)
{
    for (unsigned i = 0; alpn[i]; i++) {
        size_t len = strlen(alpn[i]);

        if (i == TLS_ALPN_MAX)
            return err_set(err, ERR_TOO_LARGE, "more than %d protocols to choose from",
                           TLS_ALPN_MAX);
        if (len == 0 || len > 255)
            return err_set(err, ERR_INVALID, "a protocol's name has 1 to 255 bytes");
        side->alpn[i] = strdup(alpn[i]);
        if (!side->alpn[i])
            return err_set(err, ERR_MEMORY, "no memory for TLS");
    }
    return 0;
}

const char *const *tls_alpn_list(struct str names, const char *list[TLS_ALPN_MAX + 1])
{
    unsigned count = 0;

    while (names.len && count < TLS_ALPN_MAX) {
        size_t end = str_find(names, '\0');

        list[count++] = names.at;
        names         = end < names.len ? str_from(names, end + 1) : STR_NONE;
    }
    list[count] = NULL;
    return count ? list : NULL;
}

int tls_side_init(struct tls_side *side, const struct tls_side_ops *ops, struct tls *tls,
                  int endpoint, const char *const *alpn, struct err *err)
{
    int rc;

    *side = (struct tls_side){ .ops = ops, .tls = tls, .refs = 1 };
    mbedtls_ssl_config_init(&side->conf);
    if (tls_lib_configure(&side->conf, endpoint) != 0)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    if (!alpn || !alpn[0])
        return 0;
    rc = copy_alpn(side, alpn, err);
    if (rc == 0 && mbedtls_ssl_conf_alpn_protocols(&side->conf, (const char **)side->alpn) != 0)
        rc = err_set(err, ERR_INVALID, "the list of protocols is refused by mbedTLS");
    return rc;
}

void tls_side_fini(struct tls_side *side)
{
    mbedtls_ssl_config_free(&side->conf);
    for (unsigned i = 0; side->alpn[i]; i++)
        free(side->alpn[i]);
}

void tls_side_drop(struct tls_side *side)
{
    if (--side->refs == 0)
        side->ops->free(side);
}
