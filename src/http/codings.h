/* http/codings.h - content codings by name (RFC 9110, 8.4.1), and which one a client likes best. */
#ifndef HTTP_CODINGS_H
#define HTTP_CODINGS_H

#include <stdbool.h>

#include "base/str.h"

struct coding;
struct request;

enum codings_id {
    CODINGS_IDENTITY, /* none */
    CODINGS_GZIP,
    CODINGS_BR,
    CODINGS_ZSTD,
    CODINGS_DEFLATE,
    CODINGS_COUNT,
};

/* The value of an Accept-Encoding that names all that codings_reader() reads. */
#define CODINGS_READ "gzip, deflate, br, zstd"

struct str codings_name(enum codings_id id);
/* "gzip", "x-gzip" ... in any case. False: none that is known. */
bool codings_named(struct str name, enum codings_id *out);

/* base/coding.h. NULL: no memory, or it is identity; there is no writer for deflate, which half of the world
 * reads otherwise than the other half. */
struct coding *codings_reader(enum codings_id id);
struct coding *codings_writer(enum codings_id id);

struct codings_choice {
    enum codings_id id;     /* identity: send it as it is */
    bool            forced; /* identity is refused by the client */
};

/* The one of OFFERS (best first) that REQUEST accepts with the highest weight (RFC 9110, 12.5.3). Where
 * none is accepted it is identity: a body that the client may not like is better than none. */
struct codings_choice codings_choose(const struct request *request, const enum codings_id *offers,
                                     unsigned offer_count);

/* OFFERS (best first) in the order in which REQUEST likes them, into OUT; those that it refuses, or likes
 * less than a body without coding, are left out. Returns how many. */
unsigned codings_order(const struct request *request, const enum codings_id *offers,
                       unsigned offer_count, enum codings_id *out);

/* Whether bodies of MEDIA_TYPE (with parameters or without) become smaller. Not so event streams: they
 * are never to be held back. */
bool codings_help(struct str media_type);
/* "text/html; charset=utf-8" -> "text/html" */
struct str codings_bare_type(struct str media_type);

#endif
