#include "bind/lfolder.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "bind/lerror.h"
#include "support/check.h"

static char       root[] = "/tmp/srv-lfolder-test-XXXXXX";
static lua_State *L;

static void open_state(void)
{
    L = luaL_newstate();
    luaL_openlibs(L);
    lerror_open(L);
    lua_settop(L, 0);
    lfolder_open(L);
    lua_setglobal(L, "folder");
    lua_pushstring(L, root);
    lua_setglobal(L, "root");
}

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name)
{
    FILE *file = fopen(path_of(name), "w");

    CHECK(file != NULL);
    fclose(file);
}

/* CODE's result as text. */
static const char *result(const char *code)
{
    if (luaL_dostring(L, code))
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return lua_tostring(L, -1);
}

TEST(files_below_a_folder_are_named_by_their_path_from_it)
{
    open_state();
    CHECK_INT(mkdir(path_of("news"), 0700), 0);
    CHECK_INT(mkdir(path_of(".git"), 0700), 0);
    put("layout.html");
    put("news/show.html");
    put(".hidden");
    put(".git/config");
    CHECK_INT(symlink("nowhere", path_of("dangling")), 0);
    CHECK_STR(result("local t = folder.files(root) table.sort(t) return table.concat(t, ' ')"),
              "layout.html news/show.html");
    lua_close(L);
}

TEST(a_folder_that_is_not_there_is_an_error_object)
{
    open_state();
    CHECK_STR(result("local t, err = folder.files(root .. '/none') return tostring(t) .. err.code"),
              "nilnot_found");
    lua_close(L);
}

TEST(a_link_back_is_not_followed)
{
    open_state();
    CHECK_INT(symlink(".", path_of("again")), 0);
    CHECK_STR(result("local t = folder.files(root) table.sort(t) return table.concat(t, ' ')"),
              "layout.html news/show.html");
    CHECK_INT(unlink(path_of("again")), 0);
    lua_close(L);
}

static void remove_files(void)
{
    static const char *const NAMES[] = { "layout.html", "news/show.html", ".hidden", ".git/config",
                                         "dangling",    "news",           ".git" };

    for (unsigned i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        remove(path_of(NAMES[i]));
    rmdir(root);
}

int main(void)
{
    int status;

    if (!mkdtemp(root))
        return 1;
    status = check_run();
    remove_files();
    return status;
}
