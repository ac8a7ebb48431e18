/* http/route.h - from a method and a path to a route: a trie of path segments, without Lua.
 *
 * A set is built (route_set_add), sealed once, and only read from then on. Matching allocates
 * nothing; what percent-decoding changes goes to the caller's arena, all else are spans of the
 * path. A path is visited once for each node of the trie at most, so no path is dear.
 *
 * Fixed text beats typed or partly fixed beats a plain parameter beats a wildcard, segment by
 * segment from the left, whatever the order; between equals the earlier route. The method is
 * looked at last. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "http/route_pattern.h"
#include "http/route_prefix.h"

struct arena;
struct buf;
struct route_set;

/* --- methods ----------------------------------------------------------------------------------- */

/* In http-parser's numbering: its enum http_method may be used as an index. */
enum route_method {
    ROUTE_DELETE,
    ROUTE_GET,
    ROUTE_HEAD,
    ROUTE_POST,
    ROUTE_PUT,
    ROUTE_CONNECT,
    ROUTE_OPTIONS,
    ROUTE_PATCH        = 28,
    ROUTE_METHOD_COUNT = 34,
};

#define ROUTE_METHOD_BIT(method) (UINT64_C(1) << (method))
#define ROUTE_METHODS_ALL        (ROUTE_METHOD_BIT(ROUTE_METHOD_COUNT) - 1)

/* Upper case, as sent. -1: none that the parser knows (501). */
int        route_method_of(struct str name);
struct str route_method_name(unsigned method);

/* Appends "GET, HEAD, OPTIONS": the value of Allow for a set of methods. HEAD comes with GET,
 * OPTIONS always. */
void route_allow(uint64_t methods, struct buf *out);

/* --- sets ------------------------------------------------------------------------------------------- */

enum route_slash {
    ROUTE_SLASH_IGNORE,   /* "/a" and "/a/" are one */
    ROUTE_SLASH_STRICT,   /* only as the pattern has it */
    ROUTE_SLASH_REDIRECT, /* the other form is ROUTE_MOVED */
};

struct route_spec {
    struct route_pattern *pattern; /* the set's from a successful add on */
    uint64_t              methods; /* ROUTE_METHOD_BIT()s, not 0 */
    enum route_slash      slash;
    bool                  fallback; /* comes after its equals, and is no conflict */
};

struct route_set *route_set_new(void);
/* Frees the patterns too. NULL is fine. */
void route_set_free(struct route_set *set);

/* Returns the route's id: 0, 1, 2 ... in order of adding. ERR_EXISTS (negative): an earlier route,
 * *EARLIER, has this pattern (names apart) and one of the methods. ERR_MEMORY is an abort. */
int route_set_add(struct route_set *set, const struct route_spec *spec, int *earlier);

/* Nothing is added any more; matching may begin. */
void route_set_seal(struct route_set *set);

unsigned                    route_set_count(const struct route_set *set);
const struct route_pattern *route_set_pattern(const struct route_set *set, unsigned id);

enum route_found {
    ROUTE_FOUND,
    ROUTE_NOT_FOUND,
    ROUTE_NO_METHOD,  /* the path has routes, but none for this method: `allowed` */
    ROUTE_BAD_ESCAPE, /* a parameter would take a broken escape: 400 */
    ROUTE_MOVED,      /* the route wants the slash at the end the other way: redirect */
};

struct route_query {
    int             method;  /* enum route_method */
    struct str      path;    /* as sent, without the query */
    int             after;   /* -1, or the `rank` of the match that passed: what comes next */
    route_accept_fn accepts; /* NULL: Lua patterns accept nothing */
    void           *accepts_arg;
    struct arena   *arena; /* for decoded values */
};

struct route_match {
    unsigned   route;   /* FOUND, MOVED, BAD_ESCAPE: the id */
    int        rank;    /* place in the order of precedence; for `after` */
    uint64_t   allowed; /* NO_METHOD: methods that this path has, HEAD beside GET included */
    unsigned   param_count;
    struct str params[ROUTE_PARAMS_MAX]; /* FOUND: decoded; at NULL = optional and missing */
};

/* HEAD finds GET's route unless the pattern has its own. */
enum route_found route_set_match(const struct route_set *set, const struct route_query *query,
                                 struct route_match *match);

/* Bytes of PATH that its first SEGMENTS take, without the slash behind them: where a mount of that
 * many segments ends. */
size_t route_path_skip(struct str path, unsigned segments);

#endif
