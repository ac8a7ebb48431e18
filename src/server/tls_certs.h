/* server/tls_certs.h - the certificates of a server that speaks HTTPS, over its life: read at the start,
 * kept for the process that may follow, read again when their files change.
 *
 * On the control thread. What is read is handed to whoever makes TLS servers of it; a file that is broken,
 * or half of a new pair, changes nothing and is told of in the log. */
#ifndef SERVER_TLS_CERTS_H
#define SERVER_TLS_CERTS_H

#include <stdbool.h>

struct config;
struct err;
struct loop;
struct supervisor_link;
struct tls_certs;
struct tls_files;
struct tls_ticket_keys;

/* Workers are to use FILES from the next connection on. */
typedef void (*tls_certs_fn)(struct tls_files *files, void *arg);

/* *OUT is NULL if the server speaks plain HTTP. Reads the files, as root if we are that still; a server
 * that was started again falls back on what the first has read. */
int  tls_certs_open(struct tls_certs **out, const struct config *config,
                    struct supervisor_link *link, struct err *err);
void tls_certs_close(struct tls_certs *certs); /* NULL is fine */

struct tls_files       *tls_certs_files(const struct tls_certs *certs);
struct tls_ticket_keys *tls_certs_tickets(const struct tls_certs *certs);

/* Says what tls_certs_open() had to say, since there is a log now, and looks after the files. */
void tls_certs_watch(struct tls_certs *certs, struct loop *loop, tls_certs_fn on_change, void *arg);
/* Looks at once. */
void tls_certs_reload(struct tls_certs *certs);

#endif
