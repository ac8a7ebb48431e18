/* data/redis_url.h - which Redis is meant, and as whom:
 *
 *     redis://[[user:]password@]host[:6379][/database]
 *     rediss://...      the same by TLS; behind a "?" may stand, joined by "&":
 *                       ca=/FILE cert=/FILE key=/FILE verify=false server_name=NAME pin=sha256/BASE64
 *     redis+unix:[//[user:password@]]/run/redis.sock[?db=2]      unix:/run/redis.sock
 *
 * User and password are percent-decoded. A word alone before the "@" is the password, as redis-cli
 * reads it. */
#ifndef DATA_REDIS_URL_H
#define DATA_REDIS_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "net/tls.h"

struct err;

enum {
    REDIS_PORT           = 6379,
    REDIS_HOST_BYTES     = 256,
    REDIS_PATH_BYTES     = 108,
    REDIS_USER_BYTES     = 128,
    REDIS_PASSWORD_BYTES = 512,
    REDIS_FILE_BYTES     = 512,
    REDIS_PLACE_BYTES    = 288, /* host and port, or the path, with a NUL */
    REDIS_DATABASE_MAX   = 65535,
    REDIS_PINS_MAX       = 8,
};

/* In PEM, by absolute paths; empty: the system's authorities, no certificate, the key beside it. */
struct redis_tls_files {
    char ca[REDIS_FILE_BYTES];
    char cert[REDIS_FILE_BYTES];
    char key[REDIS_FILE_BYTES];
};

/* Zeroes beyond what the URL says, so that two can be compared as bytes. */
struct redis_target {
    char     host[REDIS_HOST_BYTES]; /* without brackets; empty: `path` */
    char     path[REDIS_PATH_BYTES];
    char     user[REDIS_USER_BYTES];         /* empty: the default user */
    char     password[REDIS_PASSWORD_BYTES]; /* empty: no AUTH */
    uint16_t port;
    uint32_t database;

    bool                   has_tls;
    bool                   trusts_all;                    /* verify=false */
    char                   server_name[REDIS_HOST_BYTES]; /* empty: the host */
    struct redis_tls_files files;
    uint8_t                pins[REDIS_PINS_MAX][TLS_PIN_BYTES]; /* one of these public keys */
    uint32_t               pin_count;
};

/* ERR_INVALID; the text names no password. */
int redis_url_parse(struct redis_target *out, struct str url, struct err *err);

/* "127.0.0.1:6379" or "/run/redis.sock": for messages. Returns TO. */
const char *redis_target_place(const struct redis_target *target, char to[REDIS_PLACE_BYTES]);

#endif
