/* http/route.h - from a method and a path to a route: a trie of path segments, without Lua.
 *
 * A set is built (route_set_add), sealed once, and only read from then on. Matching allocates
 * nothing; what percent-decoding changes goes to the caller's arena, all else are spans of the
 * path. A path is visited once for each node of the trie at most, so no path is dear.
 *
 * Patterns (API, section 2):
 *
 *     /users/:id              one segment, not empty, percent-decoded once
 *     /opt/:name?             the segment and its slash may be missing; at the end only
 *     /files/<star>path       the rest, "" too (<star> is a star); at the end only; name "*" if none
 *     /near/:lat-:lng         several parameters and fixed text: each takes as little as it can
 *     /n/:id<int>             int number uuid slug hex date, words <en|de>, else a Lua pattern
 *     "::"  and two stars     a literal colon, a literal star
 *
 * Fixed text may be written percent-encoded or not: "/a%20b" is "/a b".
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

struct arena;
struct buf;
struct err;
struct route_pattern;
struct route_set;

enum {
    ROUTE_PATTERN_BYTES_MAX = 1024,
    ROUTE_SEGMENTS_MAX      = 32, /* of one pattern, prefixes of mounts included */
    ROUTE_PARAMS_MAX        = 16, /* the same */
};

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

/* --- patterns ----------------------------------------------------------------------------------- */

enum route_type {
    ROUTE_TEXT,   /* no type: not empty */
    ROUTE_INT,    /* -?digits, within 2^53; becomes a number */
    ROUTE_NUMBER, /* -?digits, then perhaps .digits, then perhaps an exponent; becomes a number */
    ROUTE_UUID,   /* 8-4-4-4-12 hex digits of either case */
    ROUTE_SLUG,   /* lower case letters and digits, in groups joined by one "-" */
    ROUTE_HEX,    /* hex digits of either case */
    ROUTE_DATE,   /* YYYY-MM-DD, a day of the calendar */
    ROUTE_WORDS,  /* one of the words in `rule`, parted by "|" */
    ROUTE_LUA,    /* `rule` is a Lua pattern for the whole value */
    ROUTE_REST,   /* a wildcard's */
};

struct route_param {
    struct str      name; /* "*" for a wildcard without a name */
    enum route_type type;
    struct str      rule;     /* WORDS and LUA: what stands in the angle brackets */
    bool            optional; /* the value may be missing: {NULL, 0} */
};

/* Whether VALUE fits a Lua pattern as a whole. Must not raise: false is the answer to an error. */
typedef bool (*route_accept_fn)(void *arg, struct str lua_pattern, struct str value);

/* Parses TEXT, which must begin with "/" ("" counts as "/"). NULL: *ERR says what is wrong and
 * where. The pattern keeps a copy of TEXT. */
struct route_pattern *route_pattern_new(struct str text, struct err *err);
/* NULL is fine. */
void       route_pattern_free(struct route_pattern *pattern);
struct str route_pattern_text(const struct route_pattern *pattern);

/* Parameters from left to right: the order of a match's params. */
unsigned                  route_pattern_param_count(const struct route_pattern *pattern);
const struct route_param *route_pattern_param(const struct route_pattern *pattern, unsigned index);
/* Index of the first parameter whose name stands before it too, or -1. A mount's and its route's
 * may be equal, so this is no error here. */
int route_pattern_repeated(const struct route_pattern *pattern);

/* Appends the path for VALUES (one for each parameter, percent-encoded here; {NULL, 0} leaves an
 * optional one out). ERR_INVALID: a value is missing or does not fit its type, *ERR names it.
 * ACCEPTS NULL: Lua patterns are not looked at. */
int route_pattern_build(const struct route_pattern *pattern, const struct str *values,
                        route_accept_fn accepts, void *arg, struct buf *out, struct err *err);

/* --- prefixes: middleware, mounts, static folders -------------------------------------------------- */

/* A pattern as a prefix covers a path if its segments match and the path ends there or goes on with
 * "/". "/" covers everything, a slash at its end is not looked at, a wildcard takes the rest. */
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
size_t   route_path_skip(struct str path, unsigned segments);
unsigned route_pattern_segments(const struct route_pattern *pattern);

/* --- hosts ------------------------------------------------------------------------------------------- */

/* A pattern for Host without its port: labels as segments are above (":tenant.example.com"), a
 * star as the first label takes one or more. Case does not count. */
struct route_pattern *route_host_new(struct str text, struct err *err);

/* HOST may have a port. PARAMS (NULL, or room for ROUTE_PARAMS_MAX) gets values in lower case, in
 * ARENA. ACCEPTS NULL: Lua patterns accept nothing. */
bool route_host_match(const struct route_pattern *pattern, struct str host, route_accept_fn accepts,
                      void *arg, struct arena *arena, struct str *params);

#endif
