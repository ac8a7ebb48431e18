/* http/route_prefix.h - patterns as prefixes of paths (middleware, mounts, static folders) and as
 * host names.
 *
 * A pattern as a prefix covers a path if its segments match and the path ends there or goes on with
 * "/". "/" covers everything, a slash at its end is not looked at, a wildcard takes the rest. */
#ifndef HTTP_ROUTE_PREFIX_H
#define HTTP_ROUTE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "http/route_value.h"

struct arena;
struct err;
struct route_pattern;

enum route_cover {
    ROUTE_COVERS_NEVER,
    ROUTE_COVERS_MAYBE, /* it depends on the path: ask route_prefix_match() for each request */
    ROUTE_COVERS_ALWAYS,
};

/* Whether PREFIX covers what ROUTE matches. */
enum route_cover route_prefix_covers(const struct route_pattern *prefix,
                                     const struct route_pattern *route);

/* 0 or ERR_INVALID: optional parameters have no place in a prefix. */
int route_prefix_check(const struct route_pattern *prefix, struct err *err);

/* Bytes of PATH (as sent) that PREFIX takes, without the slash behind them: 0 for "/" ; -1 when it
 * does not cover PATH. PARAMS (NULL, or room for ROUTE_PARAMS_MAX) gets the values; where an
 * escape is bad, the text as sent. ACCEPTS NULL: Lua patterns accept nothing. */
ptrdiff_t route_prefix_match(const struct route_pattern *prefix, struct str path,
                             route_accept_fn accepts, void *arg, struct arena *arena,
                             struct str *params);

/* HOST may have a port. PARAMS (NULL, or room for ROUTE_PARAMS_MAX) gets values in lower case, in
 * ARENA. ACCEPTS NULL: Lua patterns accept nothing. */
bool route_host_match(const struct route_pattern *pattern, struct str host, route_accept_fn accepts,
                      void *arg, struct arena *arena, struct str *params);

#endif
