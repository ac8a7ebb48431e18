#include "data/migrations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"

enum { NUMBER_DIGITS_MAX = 18 };

/* --- names ----------------------------------------------------------------------------------- */

static const char *const DIALECTS[] = { "sqlite", "postgres" };

struct name {
    uint64_t   number;
    struct str dialect; /* empty: for all */
};

static bool is_dialect(struct str word)
{
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++)
        if (str_is(word, str_of(DIALECTS[i])))
            return true;
    return false;
}

/* "003_tags" or "003_tags.sqlite". */
static bool read_stem(struct str stem, struct name *name)
{
    size_t     digits = str_find(stem, '_');
    struct str number = { stem.at, digits };
    size_t     dot    = str_find(stem, '.');

    name->dialect = dot < stem.len ? str_from(stem, dot + 1) : STR_NONE;
    return digits <= NUMBER_DIGITS_MAX && str_to_u64(number, UINT64_MAX / 2, &name->number) &&
           dot > digits + 1 && (dot == stem.len || is_dialect(name->dialect));
}

static bool is_script(struct str file)
{
    return file.at[0] != '.' && str_ends_with(file, STR(".sql"));
}

static int read_name(struct str file, struct name *name, struct err *err)
{
    struct str stem = { file.at, file.len - strlen(".sql") };

    if (read_stem(stem, name))
        return 0;
    return err_set(err, ERR_INVALID,
                   "%.*s: a migration is named NNN_name.sql, NNN_name.sqlite.sql or "
                   "NNN_name.postgres.sql",
                   STR_ARG(file));
}

/* --- files ----------------------------------------------------------------------------------- */

static int read_all(int fd, char *to, size_t len, struct err *err)
{
    while (len > 0) {
        ssize_t n = read(fd, to, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set_errno(err, "cannot read it");
        to += n;
        len -= (size_t)n;
    }
    return 0;
}

static int read_text(struct migration *migration, int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return err_set_errno(err, "cannot read %s", migration->file);
    if (st.st_size > MIGRATION_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s has more than %d MiB", migration->file,
                       MIGRATION_BYTES_MAX >> 20);
    migration->text_len = (size_t)st.st_size;
    migration->text     = malloc(migration->text_len + 1);
    if (!migration->text)
        return err_set(err, ERR_MEMORY, "no memory for %s", migration->file);
    migration->text[migration->text_len] = '\0';
    return read_all(fd, migration->text, migration->text_len, err);
}

static void digest_text(struct migration *migration)
{
    unsigned char bytes[CRYPTO_DIGEST_BYTES_MAX];

    crypto_digest(CRYPTO_SHA256, str_make(migration->text, migration->text_len), bytes);
    for (size_t i = 0; i < MIGRATION_DIGEST_LEN / 2; i++)
        snprintf(migration->digest + 2 * i, 3, "%02x", bytes[i]);
}

static int read_file(struct migration *migration, int folder_fd, struct err *err)
{
    int fd = openat(folder_fd, migration->file, O_RDONLY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return err_set_errno(err, "cannot read %s", migration->file);
    rc = read_text(migration, fd, err);
    close(fd);
    if (rc == 0)
        digest_text(migration);
    return rc;
}

/* --- the folder ------------------------------------------------------------------------------ */

static void fini_migration(struct migration *migration)
{
    free(migration->file);
    free(migration->text);
    *migration = (struct migration){ 0 };
}

static struct migration *find(struct migrations *migrations, uint64_t number)
{
    for (size_t i = 0; i < migrations->count; i++)
        if (migrations->list[i].number == number)
            return &migrations->list[i];
    return NULL;
}

static bool has_variant(const char *file)
{
    struct name name;
    struct str  all = str_of(file);

    return read_stem(str_make(all.at, all.len - strlen(".sql")), &name) && name.dialect.len > 0;
}

/* The place for FILE; *OUT is NULL when the dialect's own variant, which is there already, beats
 * it. */
static int place_for(struct migrations *migrations, const struct name *name, const char *file,
                     struct migration **out, struct err *err)
{
    struct migration *known = find(migrations, name->number);
    bool              own   = name->dialect.len > 0;

    *out = known;
    if (known && has_variant(known->file) == own)
        return err_set(err, ERR_INVALID, "%s and %s have the same number", known->file, file);
    if (known && !own)
        *out = NULL;
    if (known)
        return 0;
    if (migrations->count == MIGRATIONS_MAX)
        return err_set(err, ERR_TOO_LARGE, "more than %d migrations", MIGRATIONS_MAX);
    *out  = &migrations->list[migrations->count++];
    **out = (struct migration){ .number = name->number };
    return 0;
}

static bool make_room(struct migrations *migrations)
{
    struct migration *list = realloc(migrations->list, (migrations->count + 1) * sizeof(*list));

    if (list)
        migrations->list = list;
    return list != NULL;
}

static int add_file(struct migrations *migrations, const char *file, const char *dialect,
                    struct err *err)
{
    struct migration *place;
    struct name       name;
    char             *copy;
    int               rc;

    if (!is_script(str_of(file)))
        return 0;
    if (read_name(str_of(file), &name, err) != 0)
        return ERR_INVALID;
    if (name.dialect.len && !str_is(name.dialect, str_of(dialect)))
        return 0;
    copy = strdup(file);
    if (!copy || !make_room(migrations)) {
        free(copy);
        return err_set(err, ERR_MEMORY, "no memory for the migrations");
    }
    rc = place_for(migrations, &name, file, &place, err);
    if (rc != 0 || !place) {
        free(copy);
        return rc;
    }
    free(place->file);
    place->file = copy;
    return 0;
}

static int list_folder(struct migrations *migrations, DIR *folder, const char *dialect,
                       struct err *err)
{
    struct dirent *entry;
    int            rc = 0;

    while (rc == 0 && (entry = readdir(folder)))
        rc = add_file(migrations, entry->d_name, dialect, err);
    return rc;
}

static int by_number(const void *left, const void *right)
{
    uint64_t a = ((const struct migration *)left)->number;
    uint64_t b = ((const struct migration *)right)->number;

    return (a > b) - (a < b);
}

int migrations_read(struct migrations *out, const char *folder, const char *dialect,
                    struct err *err)
{
    DIR *dir = opendir(folder);
    int  rc;

    *out = (struct migrations){ 0 };
    if (!dir)
        return err_set_errno(err, "cannot read the folder %s", folder);
    rc = list_folder(out, dir, dialect, err);
    if (rc == 0 && out->count > 1)
        qsort(out->list, out->count, sizeof(*out->list), by_number);
    for (size_t i = 0; rc == 0 && i < out->count; i++)
        rc = read_file(&out->list[i], dirfd(dir), err);
    closedir(dir);
    if (rc != 0)
        migrations_fini(out);
    return rc;
}

void migrations_fini(struct migrations *migrations)
{
    for (size_t i = 0; i < migrations->count; i++)
        fini_migration(&migrations->list[i]);
    free(migrations->list);
    *migrations = (struct migrations){ 0 };
}
