#include "base/fs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs_replace.h"
#include "support/check.h"

/* tests/spec/async/fs_spec.lua holds what these calls do; here is what only C sees. */

static char       root[] = "/tmp/srv-fs-test-XXXXXX";
static struct err err;

/* The last four are told apart; a path is used before the fifth is made. */
static const char *path(const char *name)
{
    static char     paths[4][PATH_MAX];
    static unsigned next;
    char           *to = paths[next++ % 4];

    snprintf(to, PATH_MAX, "%s/%s", root, name);
    return to;
}

static void write_file(const char *name, size_t len)
{
    char *bytes = calloc(1, len + 1);
    int   rc    = fs_write(path(name), str_make(bytes, len), NULL, &err);

    free(bytes);
    CHECK_INT(rc, 0);
}

static unsigned count_names(void)
{
    struct buf names;
    unsigned   count = 0;

    buf_init(&names, 4096);
    CHECK_INT(fs_list(root, &names, &err), 0);
    for (size_t at = 0; at < names.len; at += strlen(names.at + at) + 1)
        count++;
    buf_fini(&names);
    return count;
}

static void remove_all(void)
{
    CHECK_INT(fs_remove(root, true, NULL, &err), 0);
    CHECK_INT(mkdir(root, 0700), 0);
}

TEST(a_long_call_ends_when_it_is_told_and_leaves_nothing)
{
    atomic_bool stop = true;
    struct buf  bytes;

    write_file("a", 3 << 20);
    CHECK_INT(fs_write(path("b"), STR("text"), &stop, &err), ERR_CANCELLED);
    CHECK_INT(fs_copy(path("a"), path("b"), false, &stop, &err), ERR_CANCELLED);
    CHECK_INT(fs_append(path("a"), STR("text"), &stop, &err), ERR_CANCELLED);
    CHECK_INT(fs_remove(root, true, &stop, &err), ERR_CANCELLED);
    CHECK_INT(count_names(), 1);
    buf_init(&bytes, 4 << 20);
    CHECK_INT(fs_read(path("a"), 4 << 20, &bytes, &stop, &err), ERR_CANCELLED);
    stop = false;
    CHECK_INT(fs_read(path("a"), 4 << 20, &bytes, &stop, &err), 0);
    CHECK_INT(bytes.len, 3 << 20);
    buf_fini(&bytes);
    remove_all();
}

TEST(the_limit_is_exact)
{
    struct buf bytes;

    for (size_t len = 0; len < 3; len++) {
        size_t size = len << 20 | len;

        write_file("a", size);
        buf_init(&bytes, 4 << 20);
        CHECK_INT(fs_read(path("a"), size, &bytes, NULL, &err), 0);
        CHECK_INT(bytes.len, size);
        buf_fini(&bytes);
        if (size > 0)
            CHECK_INT(fs_read(path("a"), size - 1, &bytes, NULL, &err), ERR_TOO_LARGE);
        buf_fini(&bytes);
    }
    remove_all();
}

TEST(what_cannot_be_written_leaves_no_draft)
{
    CHECK_INT(mkdir(path("folder"), 0700), 0);
    CHECK_INT(fs_write(path("folder"), STR("x"), NULL, &err), ERR_SYSTEM);
    CHECK_INT(fs_copy("/proc/self/mem", path("a"), false, NULL, &err), ERR_SYSTEM);
    CHECK_INT(fs_write("/dev/full", STR("x"), NULL, &err), ERR_SYSTEM);
    CHECK_INT(count_names(), 1);
    remove_all();
}

TEST(folders_that_lie_too_deep_are_an_error_not_a_crash)
{
    char deep[PATH_MAX];
    int  len = snprintf(deep, sizeof(deep), "%s", root);

    for (int i = 0; i < 200; i++)
        len += snprintf(deep + len, sizeof(deep) - (size_t)len, "/d");
    CHECK_INT(fs_mkdir(deep, &err), 0);
    CHECK_INT(fs_remove(root, true, NULL, &err), ERR_SYSTEM);
    deep[strlen(root) + 2 * 100] = 0;
    CHECK_INT(fs_remove(deep, true, NULL, &err), 0);
    remove_all();
}

TEST(a_file_that_was_replaced_or_written_to_has_another_mark)
{
    struct fs_mark none = fs_mark(path("nothing")), first;

    write_file("a", 3);
    first = fs_mark(path("a"));
    CHECK(fs_mark_is_same(first, fs_mark(path("a"))));
    CHECK(!fs_mark_is_same(first, none));
    CHECK(fs_mark_is_same(none, fs_mark(path("nothing"))));
    write_file("b", 3);
    CHECK_INT(fs_rename(path("b"), path("a"), &err), 0);
    CHECK(!fs_mark_is_same(first, fs_mark(path("a"))));
    first = fs_mark(path("a"));
    write_file("a", 4);
    CHECK(!fs_mark_is_same(first, fs_mark(path("a"))));
    remove_all();
}

int main(void)
{
    int status;

    if (!mkdtemp(root))
        return 1;
    status = check_run();
    fs_remove(root, true, NULL, &err);
    return status;
}
