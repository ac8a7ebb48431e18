#include "base/temps.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "support/check.h"

/* TMPDIR of all tests. */
static char       root[] = "/tmp/srv-temps-test-XXXXXX";
static struct err err;

static unsigned count_names(const char *folder)
{
    struct buf names;
    unsigned   count = 0;

    buf_init(&names, 4096);
    CHECK_INT(fs_list(folder, &names, &err), 0);
    for (size_t at = 0; at < names.len; at += strlen(names.at + at) + 1)
        count++;
    buf_fini(&names);
    return count;
}

static struct temps *open_temps(void)
{
    struct temps *temps = NULL;

    CHECK_INT(temps_open(&temps, &err), 0);
    return temps;
}

/* A file of TEMPS; its path is in static memory. */
static const char *make_file(struct temps *temps, const char *suffix)
{
    static char path[PATH_MAX];
    int         fd = -1;

    CHECK_INT(temps_file(temps, suffix, path, sizeof(path), &fd, &err), 0);
    close(fd);
    return path;
}

TEST(a_file_is_new_and_ours_alone_and_so_is_its_folder)
{
    struct temps *temps = open_temps();
    char          a[PATH_MAX], b[PATH_MAX];
    struct stat   st;
    int           fd_a, fd_b;

    CHECK_INT(count_names(root), 0);
    CHECK_INT(temps_file(temps, ".txt", a, sizeof(a), &fd_a, &err), 0);
    CHECK_INT(temps_file(temps, "", b, sizeof(b), &fd_b, &err), 0);
    CHECK(strcmp(a, b) != 0);
    CHECK(strcmp(a + strlen(a) - 4, ".txt") == 0);
    CHECK(fstat(fd_a, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK(fcntl(fd_a, F_GETFD) == FD_CLOEXEC);
    CHECK_INT(temps_file(temps, ".txt", b, 8, &fd_b, &err), ERR_SYSTEM);
    close(fd_a);
    *strrchr(a, '/') = '\0';
    CHECK(stat(a, &st) == 0 && (st.st_mode & 07777) == 0700);
    temps_close(temps);
    CHECK_INT(count_names(root), 0);
}

TEST(what_lives_is_left_alone)
{
    struct temps *one  = open_temps();
    const char   *path = make_file(one, "");
    struct temps *two  = open_temps();
    struct stat   st;

    CHECK(stat(path, &st) == 0);
    temps_close(two);
    CHECK(stat(path, &st) == 0);
    temps_close(one);
}

TEST(what_a_killed_process_has_left_is_removed_by_the_next)
{
    int   ready[2];
    char  byte;
    pid_t pid;

    CHECK_INT(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        make_file(open_temps(), ".jpg");
        while (write(ready[1], "x", 1) != 1 || pause())
            ;
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    temps_close(open_temps());
    CHECK_INT(count_names(root), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK_INT(count_names(root), 1);
    temps_close(open_temps());
    CHECK_INT(count_names(root), 0);
    close(ready[0]);
    close(ready[1]);
}

TEST(what_only_looks_like_ours_stays)
{
    char link[PATH_MAX], kept[PATH_MAX], file[PATH_MAX];
    int  fd;

    snprintf(kept, sizeof(kept), "%s/kept", root);
    snprintf(link, sizeof(link), "%s/srv-temp-linked", root);
    snprintf(file, sizeof(file), "%s/srv-temp-file", root);
    CHECK_INT(mkdir(kept, 0700), 0);
    CHECK_INT(symlink(kept, link), 0);
    fd = open(file, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0);
    close(fd);
    temps_close(open_temps());
    CHECK_INT(count_names(root), 3);
    unlink(file);
    unlink(link);
    rmdir(kept);
}

TEST(a_folder_that_was_cleaned_away_is_made_again)
{
    struct temps *temps = open_temps();
    char         *path  = strdup(make_file(temps, ""));

    unlink(path);
    *strrchr(path, '/') = '\0';
    CHECK_INT(rmdir(path), 0);
    CHECK(strncmp(make_file(temps, ""), path, strlen(path)) != 0);
    free(path);
    temps_close(temps);
}

TEST(where_nothing_can_be_made_the_reason_is_told)
{
    struct temps *temps = open_temps();
    char          path[PATH_MAX];
    int           fd;

    setenv("TMPDIR", "/nowhere/at/all", 1);
    CHECK_INT(temps_file(temps, "", path, sizeof(path), &fd, &err), ERR_NOT_FOUND);
    CHECK(strstr(err.text, "/nowhere/at/all/srv-temp-") != NULL);
    setenv("TMPDIR", root, 1);
    make_file(temps, "");
    temps_close(temps);
}

int main(void)
{
    int status;

    if (!mkdtemp(root))
        return 1;
    setenv("TMPDIR", root, 1);
    status = check_run();
    fs_remove(root, true, NULL, &err);
    return status;
}
