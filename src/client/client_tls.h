/* client/client_tls.h - how the servers that a worker calls are verified, and what they are shown: a client of
 * net/tls for each set of settings, kept for the next connection, and made anew when a file of it has
 * changed. */
#ifndef CLIENT_CLIENT_TLS_H
#define CLIENT_CLIENT_TLS_H

#include <stdbool.h>

#include "base/str.h"

struct err;
struct stream;
struct tls;
struct tls_clients;

enum { CLIENT_TLS_MAX = 64 /* sets of settings; then the one that was used least lately goes */ };

/* Of a call, texts as those of its target. What is PEM may be the text itself or the path of a file. */
struct client_tls {
    struct str id;   /* all of it but for the name: what tells settings apart */
    struct str name; /* whom the server's certificate must be for */
    bool       trusts_all;
    bool       offers_h2;
    bool       is_bare;       /* what follows is not HTTP: `alpn` is offered, */
    struct str alpn;          /* names that end with NUL each; empty: none */
    struct str ca, cert, key; /* empty: the system's authorities; none; beside the certificate */
    struct str pins;          /* TLS_PIN_BYTES each */
};

/* TLS is borrowed; NULL: there is none to be had. NULL: no memory. */
struct tls_clients *tls_clients_new(struct tls *tls);
void                tls_clients_free(struct tls_clients *clients); /* NULL is fine */

/* STREAM speaks TLS from its next byte on. Sessions are taken up again under KEY. 0, or an error that says
 * which file is wrong. */
int client_tls_begin(struct tls_clients *clients, const struct client_tls *settings, struct str key,
                     struct stream *stream, struct err *err);

#endif
