#include "server/tls_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "server/config.h"
#include "server/place.h"

/* One file. */
struct part {
    char      *path; /* owned; absolute */
    struct buf text;
};

struct tls_files {
    atomic_uint holders;

    struct part certs[TLS_IDENTITIES_MAX];
    struct part keys[TLS_IDENTITIES_MAX];
    unsigned    count;
    struct part client_ca; /* path NULL: none */

    struct tls_identity       identities[TLS_IDENTITIES_MAX];
    struct tls_server_options options; /* of all above */
};

/* --- life ----------------------------------------------------------------------------------------- */

static void free_part(struct part *part)
{
    if (part->text.at)
        explicit_bzero(part->text.at, part->text.len);
    buf_fini(&part->text);
    free(part->path);
}

struct tls_files *tls_files_hold(struct tls_files *files)
{
    atomic_fetch_add(&files->holders, 1);
    return files;
}

void tls_files_drop(struct tls_files *files)
{
    if (!files || atomic_fetch_sub(&files->holders, 1) != 1)
        return;
    for (unsigned i = 0; i < files->count; i++) {
        free_part(&files->certs[i]);
        free_part(&files->keys[i]);
    }
    free_part(&files->client_ca);
    free(files);
}

/* --- messages ------------------------------------------------------------------------------------- */

static struct place at_setting(const struct config *config, const char *setting)
{
    return place_of(config_origin(config, setting), setting);
}

/* --- paths ---------------------------------------------------------------------------------------- */

static char *below(const char *folder, const char *path)
{
    char *out;

    return asprintf(&out, "%s/%s", folder, path) < 0 ? NULL : out;
}

/* A flag's or variable's relative path begins where the command was given, or in the app's folder if the
 * file is there alone; any other in the app's folder. */
static char *absolute(const struct config *config, const char *origin, struct str path)
{
    char  given[PATH_MAX], here[PATH_MAX];
    char *in_app, *found = NULL;

    snprintf(given, sizeof(given), "%.*s", STR_ARG(path));
    if (given[0] == '/')
        return strdup(given);
    in_app = below(config->app_root, given);
    if (!in_app || place_is_file(origin))
        return in_app;
    if (access(given, F_OK) == 0)
        found = realpath(given, NULL);
    else if (access(in_app, F_OK) != 0 && getcwd(here, sizeof(here)))
        found = below(here, given);
    if (!found)
        return in_app;
    free(in_app);
    return found;
}

static int add_path(struct part *part, const struct config *config, const char *setting,
                    struct str path, struct err *err)
{
    part->path = absolute(config, config_origin(config, setting), path);
    buf_init(&part->text, TLS_PEM_BYTES_MAX);
    return part->path ? 0 : err_set(err, ERR_MEMORY, "no memory for a path");
}

static unsigned count_of(const char *list)
{
    struct str rest  = str_of(list), path;
    unsigned   count = 0;

    while (str_next(&rest, ',', &path))
        count++;
    return count;
}

static int check_counts(const struct config *config, struct err *err)
{
    unsigned certs = count_of(config->cert), keys = count_of(config->key);

    if (certs > TLS_IDENTITIES_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s: at most %d certificates, not %u",
                       at_setting(config, "cert").text, TLS_IDENTITIES_MAX, certs);
    if (keys && keys != certs)
        return err_set(err, ERR_INVALID, "%s: %u for %u certificates: one for each, in their order",
                       at_setting(config, "key").text, keys, certs);
    return 0;
}

static int fill_paths(struct tls_files *files, const struct config *config, struct err *err)
{
    struct str certs = str_of(config->cert), keys = str_of(config->key), cert, key;
    int        rc = check_counts(config, err);

    while (rc == 0 && str_next(&certs, ',', &cert)) {
        unsigned i        = files->count++;
        bool     has_keys = str_next(&keys, ',', &key);

        rc = add_path(&files->certs[i], config, "cert", cert, err);
        if (rc == 0)
            rc = has_keys ? add_path(&files->keys[i], config, "key", key, err)
                          : add_path(&files->keys[i], config, "cert", cert, err);
    }
    if (rc == 0 && *config->client_ca)
        rc = add_path(&files->client_ca, config, "client_ca", str_of(config->client_ca), err);
    return rc;
}

/* --- reading -------------------------------------------------------------------------------------- */

static int read_part(struct part *part, const struct config *config, const char *setting,
                     struct err *err)
{
    struct place place = at_setting(config, setting);
    struct err   why   = { 0 };
    int          rc    = fs_read(part->path, TLS_PEM_BYTES_MAX, &part->text, NULL, &why);

    if (rc == ERR_DENIED && *config->user)
        return err_set(err, rc, "%s: %s: the user \"%s\" must be allowed to read it", place.text,
                       why.text, config->user);
    return rc == 0 ? 0 : err_set(err, rc, "%s: %s", place.text, why.text);
}

static int read_parts(struct tls_files *files, const struct config *config, struct err *err)
{
    const char *key_setting = *config->key ? "key" : "cert";
    int         rc          = 0;

    for (unsigned i = 0; rc == 0 && i < files->count; i++) {
        rc = read_part(&files->certs[i], config, "cert", err);
        if (rc == 0)
            rc = read_part(&files->keys[i], config, key_setting, err);
    }
    if (rc == 0 && files->client_ca.path)
        rc = read_part(&files->client_ca, config, "client_ca", err);
    return rc;
}

static enum tls_client_certs client_certs_of(const struct config *config)
{
    if (strcmp(config->client_cert, "required") == 0)
        return TLS_CLIENT_CERTS_REQUIRED;
    return strcmp(config->client_cert, "optional") == 0 ? TLS_CLIENT_CERTS_OPTIONAL
                                                        : TLS_CLIENT_CERTS_NONE;
}

static const char *const *alpn_of(const struct config *config)
{
    static const char *const BOTH[] = { "h2", "http/1.1", NULL };

    return config->http2 ? BOTH : BOTH + 1;
}

static void fill_options(struct tls_files *files, const struct config *config)
{
    for (unsigned i = 0; i < files->count; i++) {
        files->identities[i].cert.text = buf_str(&files->certs[i].text);
        files->identities[i].key.text  = buf_str(&files->keys[i].text);
    }
    files->options =
        (struct tls_server_options){ .identities     = files->identities,
                                     .identity_count = files->count,
                                     .alpn           = alpn_of(config),
                                     .client_certs   = client_certs_of(config),
                                     .client_ca.text = buf_str(&files->client_ca.text) };
}

/* --- checking ------------------------------------------------------------------------------------- */

/* Each by itself, so that what is wrong has a name. The first that will expire is enough of a warning. */
static int check_one(const struct tls_files *files, unsigned i, struct err *warning,
                     struct err *why)
{
    struct tls_server_options one  = files->options;
    struct err                soon = { 0 };
    int                       rc;

    one.identities     = &files->identities[i];
    one.identity_count = 1;
    rc                 = tls_server_check(&one, &soon, why);
    if (*soon.text && !*warning->text)
        err_set(warning, ERR_INVALID, "%s: %s", files->certs[i].path, soon.text);
    return rc;
}

/* The same of the files themselves: what is wrong is told with their names. */
static void name_fault(const struct tls_files *files, unsigned i, struct err *why)
{
    struct tls_server_options one   = files->options;
    struct tls_identity       paths = { .cert.path = files->certs[i].path,
                                        .key.path  = files->keys[i].path };
    struct err                named = { 0 };

    one.identities     = &paths;
    one.identity_count = 1;
    if (files->client_ca.path)
        one.client_ca = (struct tls_pem){ .path = files->client_ca.path };
    if (tls_server_check(&one, NULL, &named) != 0)
        *why = named;
}

static int check_all(const struct tls_files *files, const struct config *config,
                     struct err *warning, struct err *err)
{
    struct err why = { 0 };

    warning->text[0] = '\0';
    for (unsigned i = 0; i < files->count; i++) {
        int rc = check_one(files, i, warning, &why);

        if (rc == 0)
            continue;
        name_fault(files, i, &why);
        return err_set(err, rc, "%s: %s", at_setting(config, "cert").text, why.text);
    }
    return 0;
}

void tls_files_check(const struct tls_files *files, struct err *warning)
{
    struct err why = { 0 };

    warning->text[0] = '\0';
    for (unsigned i = 0; i < files->count; i++)
        check_one(files, i, warning, &why);
}

static struct tls_files *new_files(const struct config *config, struct err *err)
{
    struct tls_files *files = calloc(1, sizeof(*files));

    if (!files) {
        err_set(err, ERR_MEMORY, "no memory for certificates");
        return NULL;
    }
    atomic_init(&files->holders, 1);
    if (fill_paths(files, config, err) == 0)
        return files;
    tls_files_drop(files);
    return NULL;
}

static int finish(struct tls_files **out, struct tls_files *files, const struct config *config,
                  int rc, struct err *warning, struct err *err)
{
    if (rc == 0) {
        fill_options(files, config);
        rc = check_all(files, config, warning, err);
    }
    if (rc == 0)
        *out = files;
    else
        tls_files_drop(files);
    return rc;
}

int tls_files_read(struct tls_files **out, const struct config *config, struct err *warning,
                   struct err *err)
{
    struct tls_files *files = new_files(config, err);

    if (!files)
        return err->code;
    return finish(out, files, config, read_parts(files, config, err), warning, err);
}

/* --- settings that belong together -------------------------------------------------------------------- */

static int refuse(const struct config *config, const char *setting, const char *why,
                  struct err *err)
{
    return err_set(err, ERR_INVALID, "%s: %s", at_setting(config, setting).text, why);
}

static int check_plain(const struct config *config, struct err *err)
{
    static const char NEEDS[] = "it needs a certificate of ours: cert and key, in config.lua tls";

    if (*config->key)
        return refuse(config, "key", "a key without its certificate: cert is missing", err);
    if (*config->client_ca)
        return refuse(config, "client_ca", NEEDS, err);
    if (client_certs_of(config) != TLS_CLIENT_CERTS_NONE)
        return refuse(config, "client_cert", NEEDS, err);
    if (config->redirect_http != CONFIG_NO_PORT)
        return refuse(config, "redirect_http", NEEDS, err);
    return 0;
}

int tls_files_are_wanted(const struct config *config, bool *out, struct err *err)
{
    bool asks = client_certs_of(config) != TLS_CLIENT_CERTS_NONE;

    *out = *config->cert != '\0';
    if (!*out)
        return check_plain(config, err);
    if (asks && !*config->client_ca)
        return refuse(config, "client_cert", "who signs them? client_ca names the file", err);
    if (!asks && *config->client_ca)
        return refuse(
            config, "client_ca",
            "nobody is asked for a certificate: client_cert is \"optional\" or \"required\"", err);
    return 0;
}

/* --- looking -------------------------------------------------------------------------------------- */

const struct tls_server_options *tls_files_options(const struct tls_files *files)
{
    return &files->options;
}

static bool are_same(const struct part *a, const struct part *b)
{
    return str_is(buf_str(&a->text), buf_str(&b->text));
}

bool tls_files_are_same(const struct tls_files *a, const struct tls_files *b)
{
    if (a->count != b->count || !are_same(&a->client_ca, &b->client_ca))
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (!are_same(&a->certs[i], &b->certs[i]) || !are_same(&a->keys[i], &b->keys[i]))
            return false;
    return true;
}

unsigned tls_files_paths(const struct tls_files *files, const char *paths[TLS_PATHS_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < files->count; i++) {
        paths[count++] = files->certs[i].path;
        if (strcmp(files->keys[i].path, files->certs[i].path) != 0)
            paths[count++] = files->keys[i].path;
    }
    if (files->client_ca.path)
        paths[count++] = files->client_ca.path;
    return count;
}

/* --- for the next process --------------------------------------------------------------------------- */

/* Its length as a line, then the text. */
static bool save_part(FILE *file, const struct part *part)
{
    return fprintf(file, "%zu\n", part->text.len) > 0 &&
           fwrite(part->text.at, 1, part->text.len, file) == part->text.len;
}

static bool save_parts(FILE *file, const struct tls_files *files)
{
    bool is_whole = true;

    for (unsigned i = 0; is_whole && i < files->count; i++)
        is_whole = save_part(file, &files->certs[i]) && save_part(file, &files->keys[i]);
    if (is_whole && files->client_ca.path)
        is_whole = save_part(file, &files->client_ca);
    return fflush(file) == 0 && is_whole;
}

int tls_files_save(const struct tls_files *files)
{
    int   fd       = memfd_create("srv-tls", MFD_CLOEXEC);
    int   own      = fd < 0 ? -1 : dup(fd);
    FILE *file     = own < 0 ? NULL : fdopen(own, "w");
    bool  is_whole = file && save_parts(file, files);

    if (file)
        fclose(file);
    if (is_whole)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool restore_part(FILE *file, struct part *part)
{
    size_t len;
    char  *to;

    if (fscanf(file, "%zu", &len) != 1 || fgetc(file) != '\n' || len > TLS_PEM_BYTES_MAX)
        return false;
    to = buf_reserve(&part->text, len);
    if (!to || fread(to, 1, len, file) != len)
        return false;
    part->text.len = len;
    return true;
}

static bool restore_parts(FILE *file, struct tls_files *files)
{
    for (unsigned i = 0; i < files->count; i++)
        if (!restore_part(file, &files->certs[i]) || !restore_part(file, &files->keys[i]))
            return false;
    return !files->client_ca.path || restore_part(file, &files->client_ca);
}

int tls_files_restore(struct tls_files **out, const struct config *config, int fd, struct err *err)
{
    struct tls_files *files    = new_files(config, err);
    int               own      = dup(fd);
    FILE             *file     = own < 0 ? NULL : fdopen(own, "r");
    bool              is_whole = false;
    struct err        warning  = { 0 };

    if (files && file) {
        rewind(file);
        is_whole = restore_parts(file, files);
    }
    if (file)
        fclose(file);
    if (!files)
        return err->code;
    return finish(out, files, config,
                  is_whole ? 0 : err_set(err, ERR_INVALID, "other certificates were kept"),
                  &warning, err);
}
