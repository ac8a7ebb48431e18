/* server/tls_files.h - what the files of the settings `cert`, `key` and `client_ca` hold, read once for
 * all workers.
 *
 * Never changed after reading, so that each worker may make its TLS server of it when it comes to it;
 * who needs it holds it. Any thread. */
#ifndef SERVER_TLS_FILES_H
#define SERVER_TLS_FILES_H

#include <stdbool.h>

#include "net/tls.h"

struct config;
struct err;
struct tls_files;

/* Reads and checks them. What is wrong is told with the setting, its origin and the file. What a person
 * should hear all the same goes to WARNING: a certificate that expires soon; "" if nothing. */
int tls_files_read(struct tls_files **out, const struct config *config, struct err *warning,
                   struct err *err);
/* Whether tls_files_read() reads anything: HTTPS is wanted. Settings that make no sense together are
 * ERR_INVALID. */
int tls_files_are_wanted(const struct config *config, bool *out, struct err *err);

struct tls_files *tls_files_hold(struct tls_files *files);
void              tls_files_drop(struct tls_files *files); /* NULL is fine */

/* Without tickets. Borrowed. */
const struct tls_server_options *tls_files_options(const struct tls_files *files);
bool tls_files_are_same(const struct tls_files *a, const struct tls_files *b);
/* Again, for certificates grow old. */
void tls_files_check(const struct tls_files *files, struct err *warning);

/* A file in memory with all of it, for the next server's process, which may not be allowed to read what
 * root could; and back. The descriptor is the caller's; -1: errno says why. */
int tls_files_save(const struct tls_files *files);
int tls_files_restore(struct tls_files **out, const struct config *config, int fd, struct err *err);

/* --- for who watches them ----------------------------------------------------------------------------- */

enum { TLS_PATHS_MAX = 2 * TLS_IDENTITIES_MAX + 1 };

/* The absolute paths; how many there are. Borrowed. */
unsigned tls_files_paths(const struct tls_files *files, const char *paths[TLS_PATHS_MAX]);

#endif
