/* http/h1_rules.h - what a request's head means (RFC 9112): target, Host, framing, persistence.
 *
 * The bytes are well-formed and parsed by now; here they are held against each other. Where the
 * RFC lets a server guess or refuse, it refuses: a guess is what smuggling lives on. */
#ifndef HTTP_H1_RULES_H
#define HTTP_H1_RULES_H

#include <stdbool.h>

#include "base/str.h"

struct arena;
struct h1_fault;
struct request;

/* REQUEST has its method, target as sent, version and indexed fields; the rest is filled in here:
 * target, path, query, host, content_length, chunked, has_body, expects_continue, keep_alive.
 * False: *FAULT says why. */
bool h1_rules_apply(struct arena *arena, struct request *request, struct h1_fault *fault);

/* --- what HTTP/2 has as well ------------------------------------------------------------------------ */

/* RFC 3986, 3.2.2 and 3.2.3: host [ ":" *DIGIT ], and no user before it. */
bool h1_rules_is_authority(struct str s);
/* From the target, in origin-form or "*", to path and query. Refuses a path that climbs. */
bool h1_rules_read_origin(struct request *request, struct h1_fault *fault);

#endif
