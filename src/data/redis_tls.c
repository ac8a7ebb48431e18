#include "data/redis_tls.h"

#include <stdio.h>

#include "base/err.h"
#include "data/redis_url.h"
#include "net/tls.h"

void redis_tls_init(struct redis_tls *tls, struct tls *lent, const struct redis_target *target)
{
    *tls = (struct redis_tls){ .lent = lent, .target = target };
}

void redis_tls_fini(struct redis_tls *tls)
{
    redis_tls_forget(tls);
}

void redis_tls_forget(struct redis_tls *tls)
{
    tls_client_close(tls->client);
    tls->client = NULL;
}

static struct tls_pem pem_of(const char *path)
{
    return (struct tls_pem){ .path = path[0] ? path : NULL };
}

static int open_client(struct redis_tls *tls, struct err *err)
{
    const struct redis_tls_files *files   = &tls->target->files;
    struct tls_client_options     options = {
            .trusts_all = tls->target->trusts_all,
            .ca         = pem_of(files->ca),
            .identity   = { .cert = pem_of(files->cert), .key = pem_of(files->key) },
            .pins       = tls->target->pins,
            .pin_count  = tls->target->pin_count,
    };

    if (!tls->lent)
        return err_set(err, ERR_UNSUPPORTED, "no TLS is lent to this client");
    return tls->client ? 0 : tls_client_open(&tls->client, tls->lent, &options, err);
}

int redis_tls_begin(struct redis_tls *tls, struct stream *stream, struct err *err)
{
    const struct redis_target *target = tls->target;
    char                       place[REDIS_PLACE_BYTES], key[REDIS_PLACE_BYTES + 8];
    int                        rc = open_client(tls, err);

    if (rc != 0)
        return rc;
    snprintf(key, sizeof(key), "rediss %s", redis_target_place(target, place));
    return tls_connect(
        stream, tls->client,
        &(struct tls_target){
            .name = str_of(target->server_name[0] ? target->server_name : target->host),
            .key  = str_of(key),
        },
        err);
}
