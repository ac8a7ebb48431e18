/* The trie of routes.
 *
 * A node stands for the segments so far; its children are fixed texts, kinds of partly fixed or
 * typed segments, and one plain parameter. What ends at a node is a list of `struct end`, in order
 * of precedence. That order is total and known before any request: sealing sorts the routes and
 * numbers them (`rank`), so a search looks for the smallest rank that matches. It goes down fixed
 * text first and stops at the first hit; only among the partly fixed children of a node, which are
 * equals, it must try each that fits. A segment is cut and decoded when it is first looked at. */
#include "http/route.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "http/route_segment.h"

struct route {
    struct route_pattern *pattern; /* owned */
    uint64_t              methods;
    enum route_slash      slash;
    bool                  fallback;
    int                   rank; /* set by sealing */
};

/* A route that ends here: at a node, or as a wildcard below it. */
struct end {
    uint64_t         methods; /* HEAD beside GET included once sealed */
    unsigned         route;
    int              rank;
    enum route_slash slash;
    bool             has_slash; /* the form that the pattern has: "/a/" */
    bool             is_short;  /* its optional segment is left out */
};

struct ends {
    struct end *at;
    unsigned    count;
};

struct fixed_child {
    struct str   text; /* at NULL: a free slot of the table; borrowed from a route's pattern */
    struct node *node;
};

struct partly_child {
    const struct route_pattern *pattern; /* of the route that came first */
    const struct route_segment *segment;
    struct node                *node;
};

struct node {
    struct fixed_child  *fixed; /* a table of 2^n slots, probed linearly; NULL when empty */
    unsigned             fixed_mask;
    unsigned             fixed_count;
    unsigned             partly_count;
    struct partly_child *partly; /* in order of adding */
    struct node         *plain;
    struct ends          ends;
    struct ends          tails; /* wildcards */
};

struct route_set {
    struct route *routes;
    unsigned      count;
    bool          sealed;
    struct node   root;
};

/* --- methods --------------------------------------------------------------------------------- */

static const struct str METHODS[ROUTE_METHOD_COUNT] = {
    STR_INIT("DELETE"),   STR_INIT("GET"),        STR_INIT("HEAD"),       STR_INIT("POST"),
    STR_INIT("PUT"),      STR_INIT("CONNECT"),    STR_INIT("OPTIONS"),    STR_INIT("TRACE"),
    STR_INIT("COPY"),     STR_INIT("LOCK"),       STR_INIT("MKCOL"),      STR_INIT("MOVE"),
    STR_INIT("PROPFIND"), STR_INIT("PROPPATCH"),  STR_INIT("SEARCH"),     STR_INIT("UNLOCK"),
    STR_INIT("BIND"),     STR_INIT("REBIND"),     STR_INIT("UNBIND"),     STR_INIT("ACL"),
    STR_INIT("REPORT"),   STR_INIT("MKACTIVITY"), STR_INIT("CHECKOUT"),   STR_INIT("MERGE"),
    STR_INIT("M-SEARCH"), STR_INIT("NOTIFY"),     STR_INIT("SUBSCRIBE"),  STR_INIT("UNSUBSCRIBE"),
    STR_INIT("PATCH"),    STR_INIT("PURGE"),      STR_INIT("MKCALENDAR"), STR_INIT("LINK"),
    STR_INIT("UNLINK"),   STR_INIT("SOURCE"),
};

int route_method_of(struct str name)
{
    if (likely(str_is(name, METHODS[ROUTE_GET])))
        return ROUTE_GET;
    for (int i = 0; i < ROUTE_METHOD_COUNT; i++)
        if (str_is(name, METHODS[i]))
            return i;
    return -1;
}

struct str route_method_name(unsigned method)
{
    assert(method < ROUTE_METHOD_COUNT);
    return METHODS[method];
}

void route_allow(uint64_t methods, struct buf *out)
{
    bool is_first = true;

    methods |= ROUTE_METHOD_BIT(ROUTE_OPTIONS);
    if (methods & ROUTE_METHOD_BIT(ROUTE_GET))
        methods |= ROUTE_METHOD_BIT(ROUTE_HEAD);
    for (unsigned i = 0; i < ROUTE_METHOD_COUNT; i++) {
        if (!(methods & ROUTE_METHOD_BIT(i)))
            continue;
        if (!is_first)
            buf_add_str(out, STR(", "));
        buf_add_str(out, METHODS[i]);
        is_first = false;
    }
}

/* --- building -------------------------------------------------------------------------------- */

static void *or_abort(void *memory)
{
    if (!memory) {
        fputs("srv: out of memory\n", stderr);
        abort();
    }
    return memory;
}

/* AT with room for one element more; grows when COUNT is a power of two. */
static void *grown(void *at, unsigned count, size_t element_bytes)
{
    if (count & (count - 1))
        return at;
    return or_abort(realloc(at, (count ? 2 * (size_t)count : 1) * element_bytes));
}

static struct node *node_new(void)
{
    return or_abort(calloc(1, sizeof(struct node)));
}

static bool is_same_text(const char *a, const char *b, size_t len)
{
    while (len >= 8) {
        if (memcmp(a, b, 8) != 0) /* one load and compare: the length is a constant */
            return false;
        a += 8, b += 8, len -= 8;
    }
    for (; len; len--)
        if (*a++ != *b++)
            return false;
    return true;
}

/* Four bytes and the length tell the routes of an app apart; those that they do not are neighbours
 * in the table. */
static unsigned hash_text(struct str text)
{
    unsigned hash = (unsigned)text.len * 0x9e3779b1u;

    if (text.len) {
        hash ^= (unsigned char)text.at[0] * 0x85ebca6bu;
        hash ^= (unsigned char)text.at[text.len / 2] * 0xc2b2ae35u;
        hash ^= (unsigned char)text.at[text.len - 1] * 0x27d4eb2fu;
        hash ^= (unsigned char)text.at[text.len / 4] * 0x165667b1u;
    }
    return hash ^ hash >> 15;
}

/* The slot with TEXT, or the free one where it belongs. */
static inline struct fixed_child *fixed_slot(const struct node *node, struct str text)
{
    unsigned i = hash_text(text) & node->fixed_mask;

    for (;; i = (i + 1) & node->fixed_mask) {
        struct fixed_child *slot = &node->fixed[i];

        if (!slot->text.at ||
            (slot->text.len == text.len && is_same_text(slot->text.at, text.at, text.len)))
            return slot;
    }
}

/* At most half of the slots are taken, so that a search for what is not there ends soon. */
static void grow_fixed(struct node *node)
{
    struct fixed_child *old       = node->fixed;
    unsigned            old_slots = old ? node->fixed_mask + 1 : 0;
    unsigned            slots     = old_slots ? 2 * old_slots : 4;

    node->fixed      = or_abort(calloc(slots, sizeof(*node->fixed)));
    node->fixed_mask = slots - 1;
    for (unsigned i = 0; i < old_slots; i++)
        if (old[i].text.at)
            *fixed_slot(node, old[i].text) = old[i];
    free(old);
}

static struct node *fixed_node(struct node *node, struct str text)
{
    struct fixed_child *slot;

    if (!node->fixed || 2 * (node->fixed_count + 1) > node->fixed_mask + 1)
        grow_fixed(node);
    slot = fixed_slot(node, text);
    if (!slot->text.at) {
        *slot = (struct fixed_child){ text, node_new() };
        node->fixed_count++;
    }
    return slot->node;
}

static struct node *partly_node(struct node *node, const struct route_pattern *pattern,
                                const struct route_segment *segment)
{
    for (unsigned i = 0; i < node->partly_count; i++)
        if (route_segment_is_same(node->partly[i].pattern, node->partly[i].segment, pattern,
                                  segment))
            return node->partly[i].node;
    node->partly = grown(node->partly, node->partly_count, sizeof(*node->partly));
    node->partly[node->partly_count] = (struct partly_child){ pattern, segment, node_new() };
    return node->partly[node->partly_count++].node;
}

static struct node *child_node(struct node *node, const struct route_pattern *pattern,
                               const struct route_segment *segment)
{
    switch (segment->class) {
    case ROUTE_FIXED: return fixed_node(node, route_segment_text(pattern, segment));
    case ROUTE_PARTLY: return partly_node(node, pattern, segment);
    case ROUTE_PLAIN:
        if (!node->plain)
            node->plain = node_new();
        return node->plain;
    case ROUTE_TAIL: break; /* no node: in `tails` of the one before */
    }
    return node;
}

static struct node *node_after(struct node *node, const struct route_pattern *pattern,
                               unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        node = child_node(node, pattern, &pattern->segments[i]);
    return node;
}

/* Whether one path can end at both, so far as the slash goes. */
static bool slashes_meet(const struct end *a, const struct end *b)
{
    bool is_strict = a->slash == ROUTE_SLASH_STRICT, is_other = b->slash == ROUTE_SLASH_STRICT;

    return is_strict == is_other && (!is_strict || a->has_slash == b->has_slash);
}

/* The end of an earlier route with the same pattern and one of the methods, or NULL. */
static const struct end *find_conflict(const struct route_set *set, const struct ends *ends,
                                       const struct end *end)
{
    if (set->routes[end->route].fallback)
        return NULL;
    for (unsigned i = 0; i < ends->count; i++) {
        const struct end *other = &ends->at[i];

        if (!other->is_short && !set->routes[other->route].fallback &&
            (other->methods & end->methods) && slashes_meet(other, end))
            return other;
    }
    return NULL;
}

static void add_end(struct ends *ends, struct end end)
{
    ends->at                = grown(ends->at, ends->count, sizeof(*ends->at));
    ends->at[ends->count++] = end;
}

/* The optional segment's route ends one node earlier too. At the root a path always has its slash. */
static void add_short_end(struct route_set *set, const struct route_pattern *pattern,
                          struct end end)
{
    unsigned count = pattern->segment_count - 1;

    end.is_short  = true;
    end.has_slash = count == 0;
    add_end(&node_after(&set->root, pattern, count)->ends, end);
}

struct route_set *route_set_new(void)
{
    return or_abort(calloc(1, sizeof(struct route_set)));
}

/* Refusal needs no undoing: where there is a conflict, every node was there before, so none has
 * borrowed a text of the pattern that stays the caller's. */
int route_set_add(struct route_set *set, const struct route_spec *spec, int *earlier)
{
    const struct route_pattern *pattern = spec->pattern;
    unsigned                    count   = pattern->segment_count;
    bool              has_tail          = count && pattern->segments[count - 1].class == ROUTE_TAIL;
    struct node      *node              = node_after(&set->root, pattern, count);
    struct ends      *ends              = has_tail ? &node->tails : &node->ends;
    struct end        end               = { .methods   = spec->methods,
                                            .route     = set->count,
                                            .slash     = spec->slash,
                                            .has_slash = pattern->slash || has_tail };
    const struct end *conflict;

    assert(!set->sealed && spec->methods && !(spec->methods & ~ROUTE_METHODS_ALL));
    set->routes = grown(set->routes, set->count, sizeof(*set->routes));
    set->routes[set->count] =
        (struct route){ spec->pattern, spec->methods, spec->slash, spec->fallback, -1 };
    conflict = find_conflict(set, ends, &end);
    if (conflict) {
        *earlier = (int)conflict->route;
        return ERR_EXISTS;
    }
    add_end(ends, end);
    if (pattern->optional)
        add_short_end(set, pattern, end);
    return (int)set->count++;
}

/* --- sealing --------------------------------------------------------------------------------- */

static int compare_classes(const struct route_pattern *a, const struct route_pattern *b)
{
    for (unsigned i = 0; i < a->segment_count && i < b->segment_count; i++)
        if (a->segments[i].class != b->segments[i].class)
            return a->segments[i].class < b->segments[i].class ? -1 : 1;
    return (a->segment_count > b->segment_count) - (a->segment_count < b->segment_count);
}

/* The order of precedence. Strict ones know the slash at the end, redirects would rather not. */
static int compare_routes(const void *left, const void *right)
{
    static const int SLASHES[] = {
        [ROUTE_SLASH_STRICT] = 0, [ROUTE_SLASH_IGNORE] = 1, [ROUTE_SLASH_REDIRECT] = 2
    };
    const struct route *a = *(struct route *const *)left, *b = *(struct route *const *)right;
    int                 order = compare_classes(a->pattern, b->pattern);

    if (order == 0)
        order = SLASHES[a->slash] - SLASHES[b->slash];
    if (order == 0)
        order = a->fallback - b->fallback;
    return order ? order : (a > b) - (a < b);
}

static void rank_routes(struct route_set *set)
{
    struct route **order = or_abort(malloc((set->count + 1) * sizeof(struct route *)));

    for (unsigned i = 0; i < set->count; i++)
        order[i] = &set->routes[i];
    qsort(order, set->count, sizeof(struct route *), compare_routes);
    for (unsigned i = 0; i < set->count; i++)
        order[i]->rank = (int)i;
    free(order);
}

static int compare_ends(const void *left, const void *right)
{
    return ((const struct end *)left)->rank - ((const struct end *)right)->rank;
}

/* Whether another route of the same pattern has HEAD by name, so that GET's need not serve it. */
static bool has_own_head(const struct route_set *set, const struct ends *ends,
                         const struct end *end)
{
    for (unsigned i = 0; i < ends->count; i++) {
        const struct end   *other = &ends->at[i];
        const struct route *route = &set->routes[other->route];

        if (other != end && (route->methods & ROUTE_METHOD_BIT(ROUTE_HEAD)) &&
            (!route->fallback || set->routes[end->route].fallback) && slashes_meet(other, end) &&
            compare_classes(route->pattern, set->routes[end->route].pattern) == 0)
            return true;
    }
    return false;
}

static void seal_ends(const struct route_set *set, struct ends *ends)
{
    for (unsigned i = 0; i < ends->count; i++) {
        struct end *end = &ends->at[i];

        end->rank = set->routes[end->route].rank;
        if ((end->methods & ROUTE_METHOD_BIT(ROUTE_GET)) && !has_own_head(set, ends, end))
            end->methods |= ROUTE_METHOD_BIT(ROUTE_HEAD);
    }
    if (ends->count > 1)
        qsort(ends->at, ends->count, sizeof(*ends->at), compare_ends);
}

/* Calls VISIT for each child. */
static void each_child(struct node *node, void (*visit)(struct node *child, void *arg), void *arg)
{
    for (unsigned i = 0; node->fixed && i <= node->fixed_mask; i++)
        if (node->fixed[i].text.at)
            visit(node->fixed[i].node, arg);
    for (unsigned i = 0; i < node->partly_count; i++)
        visit(node->partly[i].node, arg);
    if (node->plain)
        visit(node->plain, arg);
}

static void seal_node(struct node *node, void *arg)
{
    const struct route_set *set = arg;

    seal_ends(set, &node->ends);
    seal_ends(set, &node->tails);
    each_child(node, seal_node, arg);
}

void route_set_seal(struct route_set *set)
{
    assert(!set->sealed);
    rank_routes(set);
    seal_node(&set->root, set);
    set->sealed = true;
}

static void fini_node(struct node *node)
{
    free(node->fixed);
    free(node->partly);
    free(node->ends.at);
    free(node->tails.at);
}

static void free_node(struct node *node, void *arg)
{
    each_child(node, free_node, arg);
    fini_node(node);
    free(node);
}

void route_set_free(struct route_set *set)
{
    if (!set)
        return;
    each_child(&set->root, free_node, NULL);
    fini_node(&set->root);
    for (unsigned i = 0; i < set->count; i++)
        route_pattern_free(set->routes[i].pattern);
    free(set->routes);
    free(set);
}

unsigned route_set_count(const struct route_set *set)
{
    return set->count;
}

const struct route_pattern *route_set_pattern(const struct route_set *set, unsigned id)
{
    assert(id < set->count);
    return set->routes[id].pattern;
}

/* --- matching -------------------------------------------------------------------------------- */

struct hit {
    const struct end *end;      /* NULL: none */
    bool              is_moved; /* it wants the slash at the end the other way */
};

struct search {
    const struct route_query *query;
    struct route_accept       accept;
    uint64_t                  method;  /* its bit */
    uint64_t                  allowed; /* of all ends that were looked at */
    struct hit                best;
    unsigned                  cut_count; /* a segment is the same in every branch */
    struct route_cut          cuts[ROUTE_SEGMENTS_MAX];
};

/* ENDS are in order of precedence, so the first that fits is the best of them. */
static void consider(struct search *s, const struct ends *ends, bool has_slash)
{
    for (unsigned i = 0; i < ends->count; i++) {
        const struct end *end      = &ends->at[i];
        bool              is_exact = end->has_slash == has_slash;

        if (!is_exact && end->slash == ROUTE_SLASH_STRICT)
            continue;
        s->allowed |= end->methods;
        if (!(end->methods & s->method) || end->rank <= s->query->after)
            continue;
        s->best = (struct hit){ end, !is_exact && end->slash == ROUTE_SLASH_REDIRECT };
        return;
    }
}

static const struct route_cut *cut_at(struct search *s, unsigned depth, size_t start)
{
    struct route_cut *cut = &s->cuts[depth];

    if (depth == s->cut_count) {
        route_segment_cut(cut, s->query->path, start, s->query->arena);
        s->cut_count++;
    }
    return cut;
}

static void visit(struct search *s, const struct node *node, unsigned depth, size_t start);

static void visit_fixed(struct search *s, const struct node *node, unsigned depth,
                        const struct route_cut *cut)
{
    const struct fixed_child *child = fixed_slot(node, cut->text);

    /* "%zz" as sent must not pass for fixed text that was written "%25zz". */
    if (child->text.at && !cut->bad)
        visit(s, child->node, depth + 1, cut->end + 1);
}

static bool is_typed(const struct partly_child *child)
{
    return child->segment->part_count == 1;
}

static bool partly_fits(struct search *s, const struct partly_child *child, struct str text)
{
    const struct route_pattern *pattern = child->pattern;

    if (is_typed(child))
        return route_value_fits(&pattern->params[route_segment_param(pattern, child->segment)],
                                text, s->accept);
    return route_segment_fits(pattern, child->segment, text, s->accept, NULL);
}

static void visit_partly(struct search *s, const struct node *node, unsigned depth,
                         const struct route_cut *cut)
{
    for (unsigned i = 0; i < node->partly_count; i++)
        if (partly_fits(s, &node->partly[i], cut->text))
            visit(s, node->partly[i].node, depth + 1, cut->end + 1);
}

static bool has_children(const struct node *node)
{
    return node->fixed || node->partly_count || node->plain;
}

static void visit_children(struct search *s, const struct node *node, unsigned depth, size_t start)
{
    const struct route_cut *cut = cut_at(s, depth, start);

    if (node->fixed)
        visit_fixed(s, node, depth, cut);
    if (!s->best.end && node->partly_count)
        visit_partly(s, node, depth, cut);
    if (!s->best.end && node->plain && cut->text.len)
        visit(s, node->plain, depth + 1, cut->end + 1);
}

/* START is where the next segment begins: at the path's length behind a slash at its end, one
 * beyond without. Leaves the better of what was `best` before, an equal's, and what is below. */
static void visit(struct search *s, const struct node *node, unsigned depth, size_t start)
{
    size_t     len    = s->query->path.len;
    struct hit before = s->best;

    s->best.end = NULL;
    if (start >= len)
        consider(s, &node->ends, start == len);
    else if (has_children(node))
        visit_children(s, node, depth, start);
    if (!s->best.end && node->tails.count)
        consider(s, &node->tails, start <= len);
    if (before.end && (!s->best.end || before.end->rank < s->best.end->rank))
        s->best = before;
}

/* The rest of the path behind COUNT segments. */
static struct str rest_after(const struct search *s, unsigned count)
{
    struct str path  = s->query->path;
    size_t     start = count ? s->cuts[count - 1].end + 1 : 1;

    return start < path.len ? str_from(path, start) : STR("");
}

/* Sets the parameters of one segment. False: a bad escape. */
static bool fill_segment(const struct search *s, const struct route_pattern *pattern,
                         unsigned index, struct str *params)
{
    const struct route_segment *segment = &pattern->segments[index];
    const struct route_cut     *cut     = &s->cuts[index];
    int                         param;

    if (segment->class == ROUTE_FIXED)
        return true;
    if (segment->part_count > 1) {
        route_segment_fits(pattern, segment, cut->text, s->accept, params);
        return !cut->bad;
    }
    param = route_segment_param(pattern, segment);
    if (segment->class == ROUTE_TAIL)
        return route_decode(rest_after(s, index), s->query->arena, &params[param]);
    params[param] = cut->text;
    return !cut->bad;
}

static bool fill_params(const struct search *s, const struct route_pattern *pattern, bool is_short,
                        struct route_match *match)
{
    unsigned count   = pattern->segment_count - is_short;
    bool     is_good = true;

    match->param_count = pattern->param_count;
    if (is_short)
        match->params[pattern->param_count - 1] = STR_NONE;
    for (unsigned i = 0; i < count; i++)
        is_good &= fill_segment(s, pattern, i, match->params);
    return is_good;
}

static enum route_found tell_hit(const struct search *s, const struct route_set *set,
                                 struct route_match *match)
{
    const struct end *end = s->best.end;
    bool is_good          = fill_params(s, set->routes[end->route].pattern, end->is_short, match);

    match->route = end->route;
    match->rank  = end->rank;
    if (!is_good)
        return ROUTE_BAD_ESCAPE;
    return s->best.is_moved ? ROUTE_MOVED : ROUTE_FOUND;
}

enum route_found route_set_match(const struct route_set *set, const struct route_query *query,
                                 struct route_match *match)
{
    struct search s; /* not cleared: its cuts are 1 KiB, and most requests use two */

    assert(set->sealed);
    if (query->path.len == 0 || query->path.at[0] != '/')
        return ROUTE_NOT_FOUND; /* "*" of OPTIONS, and what no parser lets through */

    s.query     = query;
    s.accept    = (struct route_accept){ query->accepts, query->accepts_arg };
    s.method    = ROUTE_METHOD_BIT(query->method);
    s.allowed   = 0;
    s.best      = (struct hit){ NULL, false };
    s.cut_count = 0;
    visit(&s, &set->root, 0, 1);

    if (s.best.end)
        return tell_hit(&s, set, match);
    match->allowed = s.allowed;
    return s.allowed && query->after < 0 ? ROUTE_NO_METHOD : ROUTE_NOT_FOUND;
}

size_t route_path_skip(struct str path, unsigned segments)
{
    size_t at = 0;

    for (; segments && at < path.len; segments--)
        at += 1 + str_find(str_from(path, at + 1), '/');
    return at;
}
