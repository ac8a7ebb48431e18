#include "http/route_prefix.h"

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/route_segment.h"

/* --- prefix against route -------------------------------------------------------------------- */

static bool has_lua_type(const struct route_pattern *pattern, const struct route_segment *segment)
{
    for (unsigned i = 0; i < segment->part_count; i++) {
        const struct route_part *part = &pattern->parts[segment->first_part + i];

        if (part->param >= 0 && pattern->params[part->param].type == ROUTE_LUA)
            return true;
    }
    return false;
}

/* Whether SEGMENT takes the fixed TEXT. */
static enum route_cover covers_text(const struct route_pattern *pattern,
                                    const struct route_segment *segment, struct str text)
{
    static const struct route_accept NONE = { NULL, NULL };

    if (has_lua_type(pattern, segment))
        return ROUTE_COVERS_MAYBE;
    return route_segment_fits(pattern, segment, text, NONE, NULL) ? ROUTE_COVERS_ALWAYS
                                                                  : ROUTE_COVERS_NEVER;
}

static enum route_cover covers_segment(const struct route_pattern *prefix,
                                       const struct route_segment *of_prefix,
                                       const struct route_pattern *route,
                                       const struct route_segment *of_route)
{
    enum route_cover cover;

    if (of_route->class == ROUTE_FIXED)
        return covers_text(prefix, of_prefix, route_segment_text(route, of_route));
    if (of_prefix->class == ROUTE_PLAIN)
        return ROUTE_COVERS_ALWAYS;
    if (route_segment_is_same(prefix, of_prefix, route, of_route))
        return ROUTE_COVERS_ALWAYS;
    if (of_prefix->class != ROUTE_FIXED)
        return ROUTE_COVERS_MAYBE;
    cover = covers_text(route, of_route, route_segment_text(prefix, of_prefix));
    return cover == ROUTE_COVERS_NEVER ? cover : ROUTE_COVERS_MAYBE;
}

enum route_cover route_prefix_covers(const struct route_pattern *prefix,
                                     const struct route_pattern *route)
{
    enum route_cover cover = ROUTE_COVERS_ALWAYS;

    for (unsigned i = 0; i < prefix->segment_count; i++) {
        const struct route_segment *of_prefix = &prefix->segments[i];
        const struct route_segment *of_route  = &route->segments[i];
        enum route_cover            here;

        if (of_prefix->class == ROUTE_TAIL)
            return cover;
        if (i == route->segment_count)
            return ROUTE_COVERS_NEVER;
        if (of_route->class == ROUTE_TAIL)
            return ROUTE_COVERS_MAYBE;
        here = covers_segment(prefix, of_prefix, route, of_route);
        if (here == ROUTE_COVERS_NEVER)
            return here;
        if (here == ROUTE_COVERS_MAYBE || (route->optional && i + 1 == route->segment_count))
            cover = ROUTE_COVERS_MAYBE;
    }
    return cover;
}

int route_prefix_check(const struct route_pattern *prefix, struct err *err)
{
    if (prefix->optional)
        return err_set(err, ERR_INVALID, "a prefix cannot have an optional parameter");
    return 0;
}

/* --- prefix against path --------------------------------------------------------------------- */

static bool match_segment(const struct route_pattern *pattern, const struct route_segment *segment,
                          const struct route_cut *cut, struct route_accept accept,
                          struct str *params)
{
    if (segment->class == ROUTE_FIXED)
        return !cut->bad && str_is(cut->text, route_segment_text(pattern, segment));
    return route_segment_fits(pattern, segment, cut->text, accept, params);
}

ptrdiff_t route_prefix_match(const struct route_pattern *prefix, struct str path,
                             route_accept_fn accepts, void *arg, struct arena *arena,
                             struct str *params)
{
    struct route_accept accept = { accepts, arg };
    struct route_cut    cut    = { .end = 0 };

    if (path.len == 0 || path.at[0] != '/')
        return -1;
    for (unsigned i = 0; i < prefix->segment_count; i++) {
        const struct route_segment *segment = &prefix->segments[i];
        size_t                      start   = cut.end + 1;

        if (segment->class == ROUTE_TAIL) {
            struct str rest = start < path.len ? str_from(path, start) : STR("");

            if (params)
                route_decode(rest, arena, &params[route_segment_param(prefix, segment)]);
            return (ptrdiff_t)path.len;
        }
        if (start >= path.len)
            return -1;
        route_segment_cut(&cut, path, start, arena);
        if (!match_segment(prefix, segment, &cut, accept, params))
            return -1;
    }
    return (ptrdiff_t)cut.end;
}

/* --- hosts ----------------------------------------------------------------------------------- */

/* Without port and without the dot at the end, in lower case. */
static struct str plain_host(struct str host, struct arena *arena)
{
    struct str copy = arena_copy(arena, host);
    size_t     end  = host.len && host.at[0] == '[' ? str_find(copy, ']') : 0;
    char      *at   = (char *)copy.at;

    copy.len = end + str_find(str_from(copy, end), ':');
    if (str_ends_with(copy, STR(".")))
        copy.len--;
    for (size_t i = 0; i < copy.len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z')
            at[i] = (char)(at[i] | 0x20);
    return copy;
}

/* Cuts the last label off *HOST. False: nothing is left. */
static bool cut_label(struct str *host, struct str *label)
{
    const char *dot;

    if (!host->at)
        return false;
    dot = memrchr(host->at, '.', host->len);
    if (!dot) {
        *label = *host;
        *host  = STR_NONE;
        return true;
    }
    *label    = str_make(dot + 1, (size_t)(host->at + host->len - dot - 1));
    host->len = (size_t)(dot - host->at);
    return true;
}

bool route_host_match(const struct route_pattern *pattern, struct str host, route_accept_fn accepts,
                      void *arg, struct arena *arena, struct str *params)
{
    struct route_accept accept = { accepts, arg };
    struct str          rest   = plain_host(host, arena);

    for (unsigned i = pattern->segment_count; i-- > 0;) {
        const struct route_segment *segment = &pattern->segments[i];
        struct route_cut            label   = { .bad = false };

        if (segment->class == ROUTE_TAIL) {
            if (params)
                params[route_segment_param(pattern, segment)] = rest;
            return rest.len > 0;
        }
        if (!cut_label(&rest, &label.text) ||
            !match_segment(pattern, segment, &label, accept, params))
            return false;
    }
    return !rest.at;
}
