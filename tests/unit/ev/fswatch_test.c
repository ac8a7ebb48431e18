#include "ev/fswatch.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "ev/loop.h"
#include "ev/timer.h"
#include "support/check.h"

enum { PATH_BYTES = 256 };

static struct loop    *loop;
static struct fswatch *watch;
static char            root[PATH_BYTES];

/* What was told: each path on a line of its own, without the root, in order of the alphabet. */
static char     told[4096];
static unsigned tellings;
static unsigned told_count;
static bool     told_incomplete;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_change(const struct fswatch_changes *changes, void *arg)
{
    const char *sorted[FSWATCH_PATHS_MAX];

    tellings++;
    told_count      = changes->count;
    told_incomplete = changes->incomplete;
    told[0]         = '\0';
    memcpy(sorted, changes->paths, changes->count * sizeof(sorted[0]));
    qsort(sorted, changes->count, sizeof(sorted[0]), by_text);
    for (unsigned i = 0; i < changes->count && strlen(told) < sizeof(told) - PATH_BYTES; i++) {
        CHECK(strncmp(sorted[i], root, strlen(root)) == 0);
        sprintf(told + strlen(told), "%s%s", i ? "\n" : "", sorted[i] + strlen(root));
    }
    loop_break(loop);
}

/* --- files ---------------------------------------------------------------------------------- */

static const char *in_root(const char *name)
{
    static char paths[4][PATH_BYTES + 64];
    static int  next;
    char       *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
    return path;
}

static void write_file(const char *name)
{
    FILE *file = fopen(in_root(name), "w");

    CHECK(file != NULL);
    fputs("x", file);
    fclose(file);
}

static void make_folder(const char *name)
{
    CHECK(mkdir(in_root(name), 0700) == 0);
}

static void move(const char *from, const char *to)
{
    CHECK(rename(in_root(from), in_root(to)) == 0);
}

static void make_root(void)
{
    strcpy(root, "/tmp/fswatch_test.XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static int remove_one(const char *path, const struct stat *found, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_watch(const char *path)
{
    struct err err;

    tellings = 0;
    CHECK(loop_open(&loop, &err) == 0);
    CHECK_INT(fswatch_open(&watch, loop, path, on_change, NULL, &err), 0);
}

static void close_watch(void)
{
    fswatch_close(watch);
    loop_close(loop);
    watch = NULL;
    loop  = NULL;
    remove_tree(root);
}

static void check_told(const char *want)
{
    loop_run(loop);
    CHECK_STR(told, want);
}

/* Nothing is told of what happened before; this file proves that the watch has seen all of it. */
static void check_nothing_but_a_mark(void)
{
    write_file("mark");
    check_told("/mark");
}

/* --- one change ----------------------------------------------------------------------------- */

TEST(a_written_file_is_told_once_it_is_quiet)
{
    uint64_t began;

    make_root();
    open_watch(root);
    began = clock_mono_ns();
    write_file("app.lua");
    check_told("/app.lua");
    CHECK(clock_mono_ns() - began >= FSWATCH_QUIET_MS * NS_PER_MS);
    CHECK_INT(tellings, 1);
    CHECK(!told_incomplete);
    close_watch();
}

TEST(changes_that_come_together_are_told_together_and_each_once)
{
    make_root();
    write_file("gone.lua");
    open_watch(root);
    write_file("b.lua");
    write_file("a.lua");
    write_file("b.lua");
    unlink(in_root("gone.lua"));
    check_told("/a.lua\n/b.lua\n/gone.lua");
    close_watch();
}

TEST(an_editor_that_replaces_a_file_by_rename_is_one_change)
{
    make_root();
    write_file("app.lua");
    open_watch(root);
    write_file(".app.lua.swp");
    write_file("4913");
    unlink(in_root("4913"));
    move("app.lua", "app.lua~");
    write_file("app.lua");
    unlink(in_root("app.lua~"));
    check_told("/app.lua");
    close_watch();
}

TEST(a_file_is_not_told_before_it_is_closed)
{
    FILE *file;

    make_root();
    open_watch(root);
    file = fopen(in_root("half.lua"), "w");
    fputs("local", file);
    fflush(file);
    check_nothing_but_a_mark();
    fclose(file);
    check_told("/half.lua");
    close_watch();
}

TEST(links_are_told_though_nobody_writes_them)
{
    make_root();
    write_file("a");
    open_watch(root);
    CHECK(symlink("a", in_root("soft")) == 0);
    CHECK(link(in_root("a"), in_root("hard")) == 0);
    check_told("/hard\n/soft");
    close_watch();
}

TEST(databases_hidden_files_backups_and_packages_are_not_told)
{
    static const char *const names[] = {
        "news.db", "news.db-wal", "news.db-shm", "x.sqlite3", ".env",
        "#a#",     "a.lua~",      "a.swp",       "x.log",
    };

    make_root();
    make_folder(".git");
    make_folder("node_modules");
    open_watch(root);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        write_file(names[i]);
    write_file(".git/index");
    write_file("node_modules/x.js");
    make_folder(".cache");
    write_file(".cache/x");
    check_nothing_but_a_mark();
    close_watch();
}

/* --- folders -------------------------------------------------------------------------------- */

TEST(files_at_any_depth_are_told)
{
    make_root();
    make_folder("routes");
    make_folder("routes/news");
    open_watch(root);
    write_file("routes/news/init.lua");
    check_told("/routes/news/init.lua");
    close_watch();
}

TEST(a_new_folder_is_watched_with_what_it_holds_already)
{
    make_root();
    open_watch(root);
    make_folder("a");
    make_folder("a/b");
    write_file("a/b/early.lua");
    check_told("/a/b/early.lua");
    write_file("a/b/late.lua");
    check_told("/a/b/late.lua");
    close_watch();
}

TEST(a_moved_folder_is_told_and_watched_under_its_new_name)
{
    make_root();
    make_folder("old");
    make_folder("old/sub");
    write_file("old/sub/x.lua");
    open_watch(root);
    move("old", "new");
    check_told("/new/sub/x.lua\n/old");
    write_file("new/sub/x.lua");
    check_told("/new/sub/x.lua");
    close_watch();
}

TEST(a_folder_moved_out_of_the_tree_is_not_watched_any_more)
{
    char elsewhere[PATH_BYTES + 16];

    make_root();
    make_folder("sub");
    open_watch(root);
    snprintf(elsewhere, sizeof(elsewhere), "%s.moved", root);
    CHECK(rename(in_root("sub"), elsewhere) == 0);
    check_told("/sub");
    CHECK(close(open(strcat(elsewhere, "/x"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
    check_nothing_but_a_mark();
    *strrchr(elsewhere, '/') = '\0';
    remove_tree(elsewhere);
    close_watch();
}

TEST(a_removed_folder_is_told_and_may_come_back)
{
    make_root();
    make_folder("sub");
    open_watch(root);
    rmdir(in_root("sub"));
    check_told("/sub");
    make_folder("sub");
    write_file("sub/x.lua");
    check_told("/sub/x.lua");
    close_watch();
}

TEST(a_link_to_a_folder_is_not_followed)
{
    make_root();
    make_folder("real");
    CHECK(symlink(".", in_root("real/loop")) == 0);
    open_watch(root);
    write_file("real/x.lua");
    check_told("/real/x.lua");
    close_watch();
}

TEST(a_slash_behind_the_root_makes_no_difference)
{
    char slashed[PATH_BYTES + 2];

    make_root();
    snprintf(slashed, sizeof(slashed), "%s//", root);
    open_watch(slashed);
    write_file("x");
    check_told("/x");
    close_watch();
}

/* --- the root ------------------------------------------------------------------------------- */

TEST(a_root_that_is_a_file_is_told_of_alone)
{
    make_root();
    write_file("hello.lua");
    open_watch(in_root("hello.lua"));
    write_file("other.lua");
    write_file("hello.lua.new");
    move("hello.lua.new", "hello.lua");
    check_told("/hello.lua");
    CHECK_INT(told_count, 1);
    close_watch();
}

TEST(a_root_that_goes_is_a_change_and_is_watched_again_when_it_is_back)
{
    make_root();
    write_file("app.lua");
    open_watch(root);
    remove_tree(root);
    loop_run(loop);
    CHECK(told_incomplete);
    CHECK(mkdir(root, 0700) == 0);
    write_file("app.lua");
    loop_run(loop); /* the retry finds it */
    CHECK(told_incomplete);
    write_file("app.lua");
    check_told("/app.lua");
    close_watch();
}

TEST(a_root_that_is_not_there_is_an_error)
{
    struct err err;

    CHECK(loop_open(&loop, &err) == 0);
    CHECK_INT(fswatch_open(&watch, loop, "/nonexistent/app", on_change, NULL, &err), ERR_NOT_FOUND);
    CHECK(strstr(err.text, "/nonexistent/app") != NULL);
    fswatch_close(NULL);
    loop_close(loop);
}

/* --- bounds --------------------------------------------------------------------------------- */

TEST(more_changes_than_can_be_named_are_told_as_incomplete)
{
    char name[32];

    make_root();
    open_watch(root);
    for (unsigned i = 0; i < FSWATCH_PATHS_MAX + 10; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        write_file(name);
    }
    loop_run(loop);
    CHECK_INT(told_count, FSWATCH_PATHS_MAX);
    CHECK(told_incomplete);
    write_file("next");
    check_told("/next");
    CHECK(!told_incomplete);
    close_watch();
}

struct writer {
    struct timer timer;
    unsigned     writes;
};

static void on_write_again(struct timer *timer)
{
    struct writer *writer = container_of(timer, struct writer, timer);

    writer->writes++;
    write_file("busy.lua");
    timer_start(timer, loop, FSWATCH_QUIET_MS / 5);
}

static uint64_t busy_until_told_ns(void)
{
    struct writer writer = { 0 };
    uint64_t      began  = clock_mono_ns();

    timer_init(&writer.timer, on_write_again);
    timer_start(&writer.timer, loop, 1);
    check_told("/busy.lua");
    timer_stop(&writer.timer, loop);
    CHECK(writer.writes > 0);
    return clock_mono_ns() - began;
}

/* On a machine that stands still for FSWATCH_QUIET_MS it looks quiet in between: try again. */
TEST(changes_without_end_are_told_after_the_longest_delay)
{
    uint64_t took = 0;

    make_root();
    open_watch(root);
    for (unsigned run = 0; run < 20 && took < FSWATCH_DELAY_MS_MAX * NS_PER_MS; run++)
        took = busy_until_told_ns();
    CHECK(took >= FSWATCH_DELAY_MS_MAX * NS_PER_MS);
    close_watch();
}

TEST(a_tree_with_too_many_folders_is_an_error_that_says_so)
{
    struct err err;
    char       name[32];

    make_root();
    for (unsigned i = 0; i < FSWATCH_FOLDERS_MAX; i++) {
        snprintf(name, sizeof(name), "d%u", i);
        make_folder(name);
    }
    CHECK(loop_open(&loop, &err) == 0);
    CHECK_INT(fswatch_open(&watch, loop, root, on_change, NULL, &err), ERR_TOO_LARGE);
    CHECK(strstr(err.text, "8192 folders") != NULL);
    loop_close(loop);
    remove_tree(root);
}

static void on_change_close(const struct fswatch_changes *changes, void *arg)
{
    fswatch_close(watch);
    watch = NULL;
    CHECK(changes->count == 1 && strstr(changes->paths[0], "/x") != NULL);
    loop_break(loop);
}

static bool ends_in_lua(const char *path, bool is_folder, void *arg)
{
    return !is_folder && str_ends_with(str_of(path), STR(".lua"));
}

TEST(only_what_is_picked_is_told)
{
    make_root();
    make_folder("data");
    open_watch(root);
    fswatch_pick(watch, ends_in_lua);
    write_file("data/note.txt");
    make_folder("uploads");
    write_file("uploads/a.jpg");
    move("uploads", "data/uploads");
    for (int i = 0; i < FSWATCH_PATHS_MAX + 10; i++) {
        char name[32];

        sprintf(name, "data/%d.json", i);
        write_file(name);
    }
    write_file("data/app.lua");
    check_told("/data/app.lua");
    CHECK(!told_incomplete);
    close_watch();
}

TEST(a_root_that_goes_is_told_whatever_is_picked)
{
    make_root();
    open_watch(root);
    fswatch_pick(watch, ends_in_lua);
    remove_tree(root);
    check_told("");
    CHECK(told_incomplete);
    close_watch();
}

TEST(the_callback_may_close_the_watch)
{
    struct err err;

    make_root();
    CHECK(loop_open(&loop, &err) == 0);
    CHECK_INT(fswatch_open(&watch, loop, root, on_change_close, NULL, &err), 0);
    write_file("x");
    loop_run(loop);
    CHECK(watch == NULL);
    close_watch();
}

int main(void)
{
    return check_run();
}
