/* URLs of Redis: what is read lies in its fields, with zeroes behind it, for two are compared as bytes; and what
 * is refused is told how it should look.
 * links: srv_data */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/redis_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool claim)
{
    if (!claim)
        abort();
}

static void must_be_text(const char *field, size_t room)
{
    size_t len = strnlen(field, room);

    must(len < room);
    for (size_t i = len; i < room; i++)
        must(field[i] == '\0');
}

static void look_at(const struct redis_target *target)
{
    char place[REDIS_PLACE_BYTES];

    must_be_text(target->host, sizeof(target->host));
    must_be_text(target->path, sizeof(target->path));
    must_be_text(target->user, sizeof(target->user));
    must_be_text(target->password, sizeof(target->password));
    must_be_text(target->server_name, sizeof(target->server_name));
    must_be_text(target->files.ca, sizeof(target->files.ca));
    must_be_text(target->files.cert, sizeof(target->files.cert));
    must_be_text(target->files.key, sizeof(target->files.key));
    must((target->host[0] == '\0') != (target->path[0] == '\0'));
    must(target->port != 0 && target->pin_count <= REDIS_PINS_MAX);
    must(target->has_tls || (!target->trusts_all && !target->files.ca[0] && !target->pin_count));
    must(redis_target_place(target, place)[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str          url = str_make((const char *)bytes, len);
    struct redis_target first, second;
    struct err          err;
    int                 rc;

    memset(&second, 0xff, sizeof(second));
    rc = redis_url_parse(&first, url, &err);
    must(redis_url_parse(&second, url, &err) == rc);
    if (rc == 0) {
        must(memcmp(&first, &second, sizeof(first)) == 0);
        look_at(&first);
    } else {
        must(strstr(err.text, "redis://") != NULL);
    }
    return 0;
}
