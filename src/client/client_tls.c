#include "client/client_tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "net/tls.h"

enum { FILES = 3 /* ca, cert, key */ };

/* A file as it was read. */
struct seen_file {
    struct timespec changed;
    ino_t           inode;
    off_t           size;
};

struct tls_clients {
    struct tls *tls;
    struct map  by_id; /* struct entry */
    struct list used;  /* the latest first */
    unsigned    count;
};

struct entry {
    struct list        link;
    struct tls_client *client;
    struct seen_file   files[FILES];
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

static struct tls_pem pem_of(struct str value)
{
    if (value.len == 0)
        return (struct tls_pem){ 0 };
    if (memmem(value.at, value.len, "-----BEGIN", 10))
        return (struct tls_pem){ .text = value };
    return (struct tls_pem){ .path = value.at };
}

static struct seen_file look_at(struct str value)
{
    struct tls_pem pem = pem_of(value);
    struct stat    now;

    if (!pem.path || stat(pem.path, &now) != 0)
        return (struct seen_file){ 0 };
    return (struct seen_file){ now.st_ctim, now.st_ino, now.st_size };
}

static void look_at_all(const struct client_tls *settings, struct seen_file files[FILES])
{
    files[0] = look_at(settings->ca);
    files[1] = look_at(settings->cert);
    files[2] = look_at(settings->key);
}

static bool is_same(const struct seen_file *a, const struct seen_file *b)
{
    return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec &&
           a->inode == b->inode && a->size == b->size;
}

static bool are_same(const struct seen_file a[FILES], const struct seen_file b[FILES])
{
    for (int i = 0; i < FILES; i++)
        if (!is_same(&a[i], &b[i]))
            return false;
    return true;
}

/* --- one that fits ------------------------------------------------------------------------------------ */

/* Of ALPN. */
static const char *const *offer_of(const struct client_tls *settings)
{
    static const char *const BOTH[] = { "h2", "http/1.1", NULL }, *const H1[] = { "http/1.1",
                                                                                  NULL };

    if (settings->is_bare)
        return NULL;
    return settings->offers_h2 ? BOTH : H1;
}

static int open_client(struct tls_clients *clients, const struct client_tls *settings,
                       struct tls_client **out, struct err *err)
{
    struct tls_client_options options = {
        .trusts_all = settings->trusts_all,
        .ca         = pem_of(settings->ca),
        .identity   = { .cert = pem_of(settings->cert), .key = pem_of(settings->key) },
        .alpn       = offer_of(settings),
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
    struct entry    *entry = map_get(&clients->by_id, settings->id);
    struct seen_file files[FILES];

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
