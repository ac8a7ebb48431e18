#include "http/route_prefix.h"

#include "support/route_fixture.h"

/* --- prefixes ---------------------------------------------------------------------------------------- */

static enum route_cover covers(const char *prefix, const char *route)
{
    struct route_pattern *a = pattern(prefix), *b = pattern(route);
    enum route_cover      cover = route_prefix_covers(a, b);

    route_pattern_free(a);
    route_pattern_free(b);
    return cover;
}

TEST(a_prefix_covers_routes_always_never_or_maybe)
{
    CHECK_INT(covers("/", "/a/b"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("", "/"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/admin", "/admin"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/admin/", "/admin/x/:y"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/admin", "/administrator"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/admin/x", "/admin"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/orgs/:org", "/orgs/:id/members"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:org", "/orgs/:id<int>"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:org", "/orgs/me"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:org", "/orgs"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/orgs/:org", "/orgs/:id?"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/orgs", "/orgs/:id?"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/me"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/7"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/:nr<int>/x"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/orgs/:id<int>", "/orgs/:any"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/orgs/:id<%d+>", "/orgs/7"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/admin", "/:page"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/admin", "/:id<int>"), ROUTE_COVERS_NEVER);
    CHECK_INT(covers("/7", "/:id<int>"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/7", "/:id<%d+>"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/admin", "/*all"), ROUTE_COVERS_MAYBE);
    CHECK_INT(covers("/files", "/files/*path"), ROUTE_COVERS_ALWAYS);
    CHECK_INT(covers("/files/*", "/files/a"), ROUTE_COVERS_ALWAYS);
}

static ptrdiff_t taken(const char *prefix, const char *path)
{
    struct route_pattern *made = pattern(prefix);
    ptrdiff_t bytes = route_prefix_match(made, str_of(path), accepts, NULL, &arena, match.params);

    route_pattern_free(made);
    return bytes;
}

TEST(a_prefix_takes_whole_segments_of_a_path)
{
    open_set();
    CHECK_INT(taken("/", "/a"), 0);
    CHECK_INT(taken("/", "/"), 0);
    CHECK_INT(taken("/admin", "/admin"), 6);
    CHECK_INT(taken("/admin", "/admin/"), 6);
    CHECK_INT(taken("/admin/", "/admin/x"), 6);
    CHECK_INT(taken("/admin", "/%61dmin/x"), 8);
    CHECK_INT(taken("/admin", "/administrator"), -1);
    CHECK_INT(taken("/admin", "/"), -1);
    CHECK_INT(taken("/admin/x", "/admin"), -1);
    CHECK_INT(taken("/admin", "//admin"), -1);
    CHECK_INT(taken("//", "/"), -1);
    CHECK_INT(taken("/a", "*"), -1);
    CHECK_INT(taken("/orgs/:org", "/orgs/a%2Fb/members"), 11);
    CHECK_PARAM(0, "a/b");
    CHECK_INT(taken("/orgs/:org", "/orgs/%zz/members"), 9);
    CHECK_PARAM(0, "%zz");
    CHECK_INT(taken("/orgs/:org", "/orgs/"), -1);
    CHECK_INT(taken("/orgs/:org<int>", "/orgs/7"), 7);
    CHECK_INT(taken("/orgs/:org<%d+>", "/orgs/x"), -1);
    CHECK_INT(taken("/v:major.:minor", "/v1.2/x"), 5);
    CHECK_PARAM(1, "2");
    CHECK_INT(taken("/f/*rest", "/f/a/b"), 6);
    CHECK_PARAM(0, "a/b");
}

TEST(an_optional_parameter_has_no_place_in_a_prefix)
{
    struct route_pattern *optional = pattern("/a/:b?"), *plain = pattern("/a/:b");
    struct err            err;

    CHECK_INT(route_prefix_check(optional, &err), ERR_INVALID);
    CHECK_INT(route_prefix_check(plain, &err), 0);
    route_pattern_free(optional);
    route_pattern_free(plain);
}

TEST(a_mount_ends_behind_its_segments)
{
    CHECK_INT(route_path_skip(STR("/orgs/o1/members/m1"), 0), 0);
    CHECK_INT(route_path_skip(STR("/orgs/o1/members/m1"), 2), 8);
    CHECK_INT(route_path_skip(STR("/orgs/o1"), 2), 8);
    CHECK_INT(route_path_skip(STR("/orgs/o1/"), 2), 8);
    CHECK_INT(route_path_skip(STR("/orgs"), 3), 5);
}

int main(void)
{
    return route_main();
}
