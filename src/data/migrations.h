/* data/migrations.h - a folder of NNN_name.sql files, in the order of their numbers.
 *
 * 003_tags.sqlite.sql stands for 003_tags.sql where the dialect is "sqlite", and is not there for
 * another one. A .sql file of any other name is an error: it would silently never run. */
#ifndef DATA_MIGRATIONS_H
#define DATA_MIGRATIONS_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum {
    MIGRATIONS_MAX       = 10000,
    MIGRATION_BYTES_MAX  = 16 * 1024 * 1024, /* of one file */
    MIGRATION_DIGEST_LEN = 64,
};

struct migration {
    uint64_t number;
    char    *file; /* "003_tags.sql"; owned */
    char    *text; /* owned, ends in NUL */
    size_t   text_len;
    char     digest[MIGRATION_DIGEST_LEN + 1]; /* SHA-256 in hex: was it edited since? */
};

struct migrations {
    struct migration *list; /* owned */
    size_t            count;
};

/* Blocks. ERR_NOT_FOUND: there is no such folder. */
int  migrations_read(struct migrations *out, const char *folder, const char *dialect,
                     struct err *err);
void migrations_fini(struct migrations *migrations);

#endif
