#include "client/client_tls.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/map.h"
#include "net/tls.h"

enum { FILES = 3 /* ca, cert, key */ };

struct tls_clients {
    struct tls *tls;
    struct map  by_id; /* struct entry */
    struct list used;  /* the latest first */
    unsigned    count;
};

struct entry {
    struct list        link;
    struct tls_client *client;
    struct fs_mark     files[FILES]; /* as they were read */
    size_t             id_len;
    char               id[];
};

/* --- what is kept ------------------------------------------------------------------------------------- */

struct tls_clients *tls_clients_new(struct tls *tls)
{
    struct tls_clients *clients = calloc(1, sizeof(*clients));

    if (!clients)
        return NULL;
    clients->tls = tls;
    map_init(&clients->by_id);
    list_init(&clients->used);
    return clients;
}

static void drop(struct tls_clients *clients, struct entry *entry)
{
    map_remove(&clients->by_id, str_make(entry->id, entry->id_len));
    list_remove(&entry->link);
    clients->count--;
    tls_client_close(entry->client); /* connections keep what they need */
    free(entry);
}

void tls_clients_free(struct tls_clients *clients)
{
    if (!clients)
        return;
    while (!list_is_empty(&clients->used))
        drop(clients, container_of(clients->used.next, struct entry, link));
    map_fini(&clients->by_id);
    free(clients);
}

/* --- files -------------------------------------------------------------------------------------------- */

static struct fs_mark look_at(struct str value)
{
    struct tls_pem pem = tls_pem_of(value);

    return pem.path ? fs_mark(pem.path) : (struct fs_mark){ 0 };
}

static void look_at_all(const struct client_tls *settings, struct fs_mark files[FILES])
{
    files[0] = look_at(settings->ca);
    files[1] = look_at(settings->cert);
    files[2] = look_at(settings->key);
}

static bool are_same(const struct fs_mark a[FILES], const struct fs_mark b[FILES])
{
    for (int i = 0; i < FILES; i++)
        if (!fs_mark_is_same(a[i], b[i]))
            return false;
    return true;
}

/* --- one that fits ------------------------------------------------------------------------------------ */

static struct str offer_of(const struct client_tls *settings)
{
    if (settings->is_bare)
        return settings->alpn;
    return settings->offers_h2 ? STR("h2\0http/1.1\0") : STR("http/1.1\0");
}

static int open_client(struct tls_clients *clients, const struct client_tls *settings,
                       struct tls_client **out, struct err *err)
{
    const char               *alpn[TLS_ALPN_MAX + 1];
    struct tls_client_options options = {
        .trusts_all = settings->trusts_all,
        .ca         = tls_pem_of(settings->ca),
        .identity   = { .cert = tls_pem_of(settings->cert), .key = tls_pem_of(settings->key) },
        .alpn       = tls_alpn_list(offer_of(settings), alpn),
        .pins       = (const uint8_t(*)[TLS_PIN_BYTES])settings->pins.at,
        .pin_count  = (unsigned)(settings->pins.len / TLS_PIN_BYTES),
    };

    return tls_client_open(out, clients->tls, &options, err);
}

static int add(struct tls_clients *clients, const struct client_tls *settings, struct entry **out,
               struct err *err)
{
    struct entry *entry = malloc(sizeof(*entry) + settings->id.len);
    int           rc;

    if (!entry)
        return err_set(err, ERR_MEMORY, "no memory for TLS");
    look_at_all(settings, entry->files); /* before they are read */
    rc = open_client(clients, settings, &entry->client, err);
    if (rc != 0) {
        free(entry);
        return rc;
    }
    if (clients->count == CLIENT_TLS_MAX)
        drop(clients, container_of(clients->used.prev, struct entry, link));
    entry->id_len = settings->id.len;
    memcpy(entry->id, settings->id.at, settings->id.len);
    list_prepend(&clients->used, &entry->link);
    clients->count++;
    *out = entry;
    if (map_put(&clients->by_id, str_make(entry->id, entry->id_len), entry, NULL))
        return 0;
    drop(clients, entry);
    return err_set(err, ERR_MEMORY, "no memory for TLS");
}

static int find(struct tls_clients *clients, const struct client_tls *settings, struct entry **out,
                struct err *err)
{
    struct entry  *entry = map_get(&clients->by_id, settings->id);
    struct fs_mark files[FILES];

    if (!entry)
        return add(clients, settings, out, err);
    look_at_all(settings, files);
    if (!are_same(files, entry->files)) {
        drop(clients, entry);
        return add(clients, settings, out, err);
    }
    list_remove(&entry->link);
    list_prepend(&clients->used, &entry->link);
    *out = entry;
    return 0;
}

int client_tls_begin(struct tls_clients *clients, const struct client_tls *settings, struct str key,
                     struct stream *stream, struct err *err)
{
    struct tls_target target = { .name = settings->name, .key = key };
    struct entry     *entry;
    int               rc;

    if (!clients->tls)
        return err_set(err, ERR_UNSUPPORTED, "no TLS is lent to this client");
    rc = find(clients, settings, &entry, err);
    return rc == 0 ? tls_connect(stream, entry->client, &target, err) : rc;
}
