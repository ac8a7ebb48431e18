#include "http/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "http/message.h"
#include "support/check.h"

static char                 base[] = "/tmp/srv_files_XXXXXX";
static struct files_folder *folder;
static struct files_rules   rules = { .index = "index.html" };
static struct files_file    file;

static void write_file(const char *name, const char *text, time_t mtime)
{
    struct timespec times[2] = { { mtime, 0 }, { mtime, 0 } };
    int             fd       = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, text, strlen(text)) < 0 || futimens(fd, times) < 0)
        abort();
    close(fd);
}

/* A folder with a secret beside it, and links that lead there and not there. */
static void make_tree(void)
{
    if (!mkdtemp(base) || chdir(base) < 0 || mkdir("root", 0700) < 0 ||
        mkdir("root/dir", 0700) < 0 || mkdir("root/.git", 0700) < 0 ||
        mkdir("root/.well-known", 0700) < 0 || mkdir("root/empty", 0700) < 0 ||
        mkfifo("root/pipe", 0600) < 0)
        abort();
    write_file("secret.txt", "secret", 1000);
    write_file("root/hello.txt", "hello", 1000);
    write_file("root/index.html", "index", 1000);
    write_file("root/dir/index.html", "dir index", 1000);
    write_file("root/.env", "secret", 1000);
    write_file("root/.git/config", "secret", 1000);
    write_file("root/.well-known/security.txt", "contact", 1000);
    write_file("root/a b.txt", "blank", 1000);
    write_file("root/back\\slash", "x", 1000);
    write_file("root/app.js", "plain", 1000);
    write_file("root/app.js.gz", "gzip", 1000);
    write_file("root/app.js.br", "br", 2000);
    write_file("root/app.js.zst", "stale", 500);
    if (symlink("../secret.txt", "root/out") < 0 || symlink("/etc/passwd", "root/absolute") < 0 ||
        symlink("..", "root/up") < 0 || symlink("hello.txt", "root/inside") < 0 ||
        symlink("dir", "root/link") < 0)
        abort();
}

static void remove_tree(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", base);
    if (chdir("/") < 0 || system(command) != 0)
        abort();
}

static enum files_outcome find(struct str path)
{
    return files_find(folder, path, &rules, &file);
}

static void check_text(struct str path, const char *want)
{
    char    text[100];
    ssize_t n;

    CHECK_INT(find(path), FILES_FOUND);
    n = read(file.fd, text, sizeof(text));
    close(file.fd);
    CHECK(n >= 0);
    CHECK_INT(file.size, n);
    CHECK_MEM(text, (size_t)n, want, strlen(want));
}

TEST(files_and_indexes_are_found)
{
    check_text(STR("hello.txt"), "hello");
    CHECK_INT(file.mtime_s, 1000);
    CHECK(str_is(file.name, STR("hello.txt")));
    check_text(STR("a b.txt"), "blank");
    check_text(STR(""), "index");
    CHECK(str_is(file.name, STR("index.html")));
    check_text(STR("dir/"), "dir index");
}

TEST(folders_want_their_slash)
{
    CHECK_INT(find(STR("dir")), FILES_IS_FOLDER);
    CHECK_INT(find(STR("link")), FILES_IS_FOLDER);
    CHECK_INT(find(STR("empty/")), FILES_MISSING);
    CHECK_INT(find(STR("hello.txt/")), FILES_MISSING);
    rules.index = NULL;
    CHECK_INT(find(STR("")), FILES_MISSING);
    CHECK_INT(find(STR("dir/")), FILES_MISSING);
    rules.index = "index.html";
}

TEST(no_path_leads_out)
{
    static const char *const paths[] = { "../secret.txt",
                                         "dir/../../secret.txt",
                                         "/etc/passwd",
                                         "..",
                                         "../",
                                         "./hello.txt",
                                         "dir/../hello.txt",
                                         ".",
                                         "out",
                                         "absolute",
                                         "up/secret.txt",
                                         "link/../../secret.txt",
                                         "//hello.txt",
                                         "dir//index.html",
                                         "back\\slash",
                                         "..\\secret.txt",
                                         "nothing",
                                         "pipe",
                                         "up/",
                                         "/proc/self/root/etc/passwd" };

    for (unsigned i = 0; i < ARRAY_LEN(paths); i++)
        CHECK_INT(find(str_of(paths[i])), FILES_MISSING);
}

TEST(links_that_stay_inside_are_followed)
{
    check_text(STR("inside"), "hello");
    check_text(STR("link/index.html"), "dir index");
}

TEST(dotfiles_are_not_there)
{
    CHECK_INT(find(STR(".env")), FILES_MISSING);
    CHECK_INT(find(STR(".git/config")), FILES_MISSING);
    CHECK_INT(find(STR("dir/.well-known/x")), FILES_MISSING);
    check_text(STR(".well-known/security.txt"), "contact");
    rules.dotfiles = true;
    check_text(STR(".env"), "secret");
    CHECK_INT(find(STR("../secret.txt")), FILES_MISSING);
    rules.dotfiles = false;
}

TEST(a_nul_is_a_bad_path)
{
    CHECK_INT(find(STR("hello.txt\0.png")), FILES_BAD_PATH);
}

TEST(a_path_too_long_is_missing)
{
    static char path[10000];

    memset(path, 'a', sizeof(path));
    CHECK_INT(find(str_make(path, sizeof(path))), FILES_MISSING);
    CHECK_INT(find(str_make(path, 4095)), FILES_MISSING);
    CHECK_INT(find(str_make(path, 4090)), FILES_MISSING);
}

static void accept_codings(const char *value)
{
    struct field   field   = { STR("accept-encoding"), str_of(value), FIELD_ACCEPT_ENCODING };
    struct request request = { .fields = &field, .field_count = 1 };

    request_index_fields(&request);
    rules.codings = files_codings(&request);
}

TEST(a_compressed_sister_is_taken_if_it_is_not_older)
{
    accept_codings("gzip, br, zstd");
    check_text(STR("app.js"), "br");
    CHECK_INT(file.coding, CODINGS_BR);
    CHECK(str_is(file.name, STR("app.js")));
    accept_codings("GZIP");
    check_text(STR("app.js"), "gzip");
    accept_codings("zstd");
    check_text(STR("app.js"), "plain");
    CHECK_INT(file.coding, CODINGS_IDENTITY);
    accept_codings("br");
    check_text(STR("hello.txt"), "hello");
    rules.codings.count = 0;
}

TEST(weights_decide_among_sisters)
{
    static const struct {
        const char *accepted, *want;
    } CASES[] = {
        { "br;q=0.1, gzip", "gzip" },
        { "zstd, br;q=0.5, gzip;q=0.6", "gzip" }, /* the best one is older */
        { "gzip;q=0.5, identity", "plain" },
        { "gzip;q=0.5", "gzip" },
        { "*", "br" },
        { "*;q=0, gzip", "gzip" },
        { "br;q=0, *", "gzip" },
        { "gzip; q=0.000 , identity", "plain" },
        { "xgzip, gzipx", "plain" },
        { "", "plain" },
    };

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        accept_codings(CASES[i].accepted);
        check_text(STR("app.js"), CASES[i].want);
    }
    rules.codings.count = 0;
}

TEST(another_folder_in_its_place_is_seen)
{
    if (rename("root", "old") < 0 || mkdir("root", 0700) < 0)
        abort();
    CHECK_INT(files_find(folder, STR("hello.txt"), &rules, &file), FILES_MISSING);
    write_file("root/hello.txt", "new", 1000);
    check_text(STR("hello.txt"), "new");
    if (unlink("root/hello.txt") < 0 || rmdir("root") < 0)
        abort();
    CHECK_INT(files_find(folder, STR("hello.txt"), &rules, &file), FILES_MISSING);
    if (rename("old", "root") < 0)
        abort();
    check_text(STR("hello.txt"), "hello");
}

TEST(a_folder_that_is_none_is_an_error)
{
    struct files_folder *none;
    struct err          *quiet = NULL;

    CHECK(files_open(&none, "root/nowhere", quiet) < 0);
    CHECK(files_open(&none, "root/hello.txt", quiet) < 0);
}

int main(void)
{
    int status;

    make_tree();
    if (files_open(&folder, "root", NULL) < 0)
        abort();
    status = check_run();
    files_close(folder);
    remove_tree();
    return status;
}
