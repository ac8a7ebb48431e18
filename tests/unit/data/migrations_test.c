#include "data/migrations.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/compiler.h"
#include "support/check.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/srv-migrations-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void add(const char *name, const char *text)
{
    char  path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
}

TEST(files_stand_in_the_order_of_their_numbers)
{
    struct migrations migrations;

    make_folder();
    add("010_tags.sql", "ten");
    add("9_authors.sql", "nine");
    add("001_articles.sql", "");
    add("README", "not a script");
    add(".010_tags.sql", "an editor's");
    CHECK_INT(migrations_read(&migrations, folder, "sqlite", NULL), 0);
    CHECK_INT(migrations.count, 3);
    CHECK_STR(migrations.list[0].file, "001_articles.sql");
    CHECK_INT(migrations.list[0].text_len, 0);
    CHECK_STR(migrations.list[1].file, "9_authors.sql");
    CHECK_STR(migrations.list[2].text, "ten");
    CHECK_STR(migrations.list[0].digest,
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    migrations_fini(&migrations);
    remove_folder();
}

TEST(a_variant_stands_for_its_dialect_alone)
{
    struct migrations migrations;

    make_folder();
    add("001_a.sql", "for all");
    add("001_a.sqlite.sql", "for sqlite");
    add("002_b.postgres.sql", "for postgres");
    CHECK_INT(migrations_read(&migrations, folder, "sqlite", NULL), 0);
    CHECK_INT(migrations.count, 1);
    CHECK_STR(migrations.list[0].text, "for sqlite");
    migrations_fini(&migrations);
    CHECK_INT(migrations_read(&migrations, folder, "postgres", NULL), 0);
    CHECK_INT(migrations.count, 2);
    CHECK_STR(migrations.list[0].text, "for all");
    CHECK_STR(migrations.list[1].text, "for postgres");
    migrations_fini(&migrations);
    remove_folder();
}

TEST(one_number_twice_is_an_error_that_names_both)
{
    struct migrations migrations;
    struct err        err;

    make_folder();
    add("001_a.sql", "");
    add("1_b.sql", "");
    CHECK_INT(migrations_read(&migrations, folder, "sqlite", &err), ERR_INVALID);
    CHECK(strstr(err.text, "001_a.sql") && strstr(err.text, "1_b.sql"));
    remove_folder();
}

TEST(a_script_that_would_never_run_is_an_error)
{
    static const char *const NAMES[] = { "articles.sql", "001.sql",  "001-a.sql",
                                         "_a.sql",       "001_.sql", "001_a.mysql.sql" };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        struct migrations migrations;
        struct err        err;

        make_folder();
        add(NAMES[i], "");
        CHECK_INT(migrations_read(&migrations, folder, "sqlite", &err), ERR_INVALID);
        CHECK(strstr(err.text, NAMES[i]));
        remove_folder();
    }
}

TEST(a_missing_folder_is_told_from_an_empty_one)
{
    struct migrations migrations;

    make_folder();
    CHECK_INT(migrations_read(&migrations, folder, "sqlite", NULL), 0);
    CHECK_INT(migrations.count, 0);
    migrations_fini(&migrations);
    remove_folder();
    CHECK_INT(migrations_read(&migrations, folder, "sqlite", NULL), ERR_NOT_FOUND);
}

int main(void)
{
    return check_run();
}
