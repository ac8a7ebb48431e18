#include "http/listing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "support/check.h"

static char                 base[] = "/tmp/srv_listing_XXXXXX";
static struct files_folder *folder;
static struct listing       listing;

static void touch(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);

    if (fd < 0 || write(fd, "abc", 3) != 3)
        abort();
    close(fd);
}

static void make_tree(void)
{
    if (!mkdtemp(base) || chdir(base) < 0 || mkdir("root", 0700) < 0 || mkdir("root/z", 0700) < 0 ||
        mkdir("root/.git", 0700) < 0 || mkdir("outside", 0700) < 0 || mkfifo("root/pipe", 0600) < 0)
        abort();
    touch("root/b");
    touch("root/A");
    touch("root/.env");
    touch("root/back\\slash");
    touch("root/z/inner");
    if (symlink("../outside", "root/out") < 0 || symlink("/etc", "root/etc") < 0 ||
        symlink("nowhere", "root/broken") < 0 || symlink("z", "root/inside") < 0 ||
        symlink("../b", "root/z/up") < 0 || symlink("../../outside", "root/z/out") < 0)
        abort();
}

static void remove_tree(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", base);
    if (chdir("/") < 0 || system(command) != 0)
        abort();
}

/* The names, each with a blank behind it, those of folders with a slash. */
static void check_names(struct str path, bool shows_dotfiles, const char *want)
{
    char   names[300];
    size_t len = 0;

    CHECK_INT(listing_read(folder, path, shows_dotfiles, &listing), FILES_FOUND);
    names[0] = '\0';
    for (unsigned i = 0; i < listing.count; i++) {
        const struct listing_entry *entry = &listing.entries[i];

        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s ",
                                listing_name(&listing, entry), entry->is_folder ? "/" : "");
    }
    CHECK_STR(names, want);
    CHECK(!listing.is_cut);
    listing_fini(&listing);
}

TEST(folders_come_first_and_hidden_names_not_at_all)
{
    check_names(STR(""), false, "inside/ z/ A b ");
    check_names(STR(""), true, ".git/ inside/ z/ .env A b ");
}

TEST(links_are_what_they_lead_to_within_the_root)
{
    check_names(STR("z/"), false, "inner up ");
    check_names(STR("inside/"), false, "inner up ");
}

TEST(what_is_no_folder_or_outside_is_missing)
{
    static const struct str PATHS[] = { STR_INIT("out/"),  STR_INIT("etc/"), STR_INIT("b/"),
                                        STR_INIT("none/"), STR_INIT("../"),  STR_INIT(".git/"),
                                        STR_INIT("/"),     STR_INIT("z//"),  STR_INIT("z/../") };

    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++)
        CHECK_INT(listing_read(folder, PATHS[i], false, &listing), FILES_MISSING);
    CHECK_INT(listing_read(folder, str_make("z\0/", 3), false, &listing), FILES_BAD_PATH);
}

TEST(a_file_has_its_size_and_time)
{
    struct stat st;

    CHECK_INT(listing_read(folder, STR("z/"), false, &listing), FILES_FOUND);
    CHECK_INT(listing.entries[0].size, 3);
    CHECK_INT(stat("root/z/inner", &st), 0);
    CHECK_INT(listing.entries[0].mtime_s, st.st_mtime);
    listing_fini(&listing);
}

TEST(a_large_folder_is_cut)
{
    char name[40];

    if (mkdir("root/many", 0700) < 0)
        abort();
    for (int i = 0; i < LISTING_ENTRIES_MAX + 1; i++) {
        snprintf(name, sizeof(name), "root/many/%d", i);
        touch(name);
    }
    CHECK_INT(listing_read(folder, STR("many/"), false, &listing), FILES_FOUND);
    CHECK_INT(listing.count, LISTING_ENTRIES_MAX);
    CHECK(listing.is_cut);
    listing_fini(&listing);
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
