#include "http/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"
#include "http/message.h"

struct files_folder {
    int fd;
};

/* Neither waits for a pipe's writer nor takes a terminal. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

int files_open(struct files_folder **out, const char *path, struct err *err)
{
    struct files_folder *folder;
    int                  fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_set_errno(err, "%s", path);
    folder = malloc(sizeof(*folder));
    if (!folder) {
        close(fd);
        return err_set(err, ERR_MEMORY, "%s: no memory", path);
    }
    folder->fd = fd;
    *out       = folder;
    return 0;
}

void files_close(struct files_folder *folder)
{
    if (!folder)
        return;
    close(folder->fd);
    free(folder);
}

/* --- paths ------------------------------------------------------------------------------------- */

/* ".well-known" is public by its very definition (RFC 8615). */
static bool is_hidden(struct str segment, bool is_first)
{
    return segment.len && segment.at[0] == '.' &&
           !(is_first && str_is(segment, STR(".well-known")));
}

/* "." and ".." are refused here too, though the kernel would hold them beneath the folder: one
 * file has one path. So are empty segments, and backslashes, which mean a slash to somebody. */
static enum files_outcome check_path(struct str path, const struct files_rules *rules)
{
    struct str rest     = path, segment;
    bool       is_first = true;

    if (str_find(path, '\0') < path.len)
        return FILES_BAD_PATH;
    if (path.len >= PATH_MAX || str_find(path, '\\') < path.len)
        return FILES_MISSING;
    while (rest.len) {
        size_t end = str_find(rest, '/');

        segment = str_make(rest.at, end);
        if (!segment.len || str_is(segment, STR(".")) || str_is(segment, STR("..")))
            return FILES_MISSING;
        if (!rules->dotfiles && is_hidden(segment, is_first))
            return FILES_MISSING;
        rest     = end < rest.len ? str_from(rest, end + 1) : STR_NONE;
        is_first = false;
    }
    return FILES_FOUND;
}

/* --- opening --------------------------------------------------------------------------------------- */

/* Without openat2() (an old kernel, a filter of system calls): segment by segment, and no symbolic
 * link at all. PATH is cut up on the way. */
static int open_by_steps(int folder_fd, char *path)
{
    int fd = folder_fd;

    for (char *segment = path; segment;) {
        char *slash = strchr(segment, '/');
        int   flags = slash ? O_PATH | O_DIRECTORY | O_CLOEXEC : OPEN_FLAGS;
        int   next;

        if (slash)
            *slash = '\0';
        next = openat(fd, segment, flags | O_NOFOLLOW);
        if (fd != folder_fd)
            close(fd);
        if (next < 0)
            return -1;
        fd      = next;
        segment = slash ? slash + 1 : NULL;
    }
    return fd;
}

/* Whether the kernel has refused openat2() as such, once for all. */
static atomic_bool openat2_is_missing;

/* EAGAIN: the tree was changed while the kernel walked it. */
enum { RACES_MAX = 8 };

static int open_beneath(const struct files_folder *folder, char *path)
{
    struct open_how how = { .flags   = OPEN_FLAGS,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

    if (!atomic_load_explicit(&openat2_is_missing, memory_order_relaxed)) {
        long fd;

        for (int tries = 0; tries < RACES_MAX; tries++) {
            fd = syscall(SYS_openat2, folder->fd, path, &how, sizeof(how));
            if (fd >= 0 || errno != EAGAIN)
                break;
        }
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return (int)fd;
        atomic_store_explicit(&openat2_is_missing, true, memory_order_relaxed);
    }
    return open_by_steps(folder->fd, path);
}

static enum files_outcome outcome_of_errno(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? FILES_EXHAUSTED : FILES_MISSING;
}

/* PATH ends in NUL and may be changed. */
static enum files_outcome open_file(const struct files_folder *folder, char *path,
                                    struct files_file *out)
{
    struct stat stat = { 0 };
    int         fd   = open_beneath(folder, path);

    if (fd < 0)
        return outcome_of_errno();
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) {
        close(fd); /* a folder, a pipe, a device */
        return S_ISDIR(stat.st_mode) ? FILES_IS_FOLDER : FILES_MISSING;
    }
    out->fd       = fd;
    out->size     = (uint64_t)stat.st_size;
    out->inode    = (uint64_t)stat.st_ino;
    out->mtime_s  = stat.st_mtim.tv_sec;
    out->mtime_ns = (uint32_t)stat.st_mtim.tv_nsec;
    out->coding   = FILES_PLAIN;
    return FILES_FOUND;
}

/* --- compressed sisters -------------------------------------------------------------------------------- */

struct sister {
    enum files_coding coding;
    const char       *suffix;
};

/* The smallest first, as a rule. */
static const struct sister sisters[] = { { FILES_BR, ".br" },
                                         { FILES_ZSTD, ".zst" },
                                         { FILES_GZIP, ".gz" } };

static bool is_older(const struct files_file *a, const struct files_file *b)
{
    return a->mtime_s < b->mtime_s || (a->mtime_s == b->mtime_s && a->mtime_ns < b->mtime_ns);
}

/* PATH has room behind its LEN bytes for a suffix. */
static void prefer_sister(const struct files_folder *folder, const char *path, size_t len,
                          unsigned codings, struct files_file *file)
{
    char name[PATH_MAX + sizeof(".zst")];

    for (unsigned i = 0; i < ARRAY_LEN(sisters); i++) {
        struct files_file found;

        if (!(codings & sisters[i].coding))
            continue;
        memcpy(name, path, len);
        memcpy(name + len, sisters[i].suffix, strlen(sisters[i].suffix) + 1);
        if (open_file(folder, name, &found) != FILES_FOUND)
            continue;
        if (is_older(&found, file)) {
            close(found.fd);
            continue;
        }
        close(file->fd);
        found.name   = file->name;
        found.coding = sisters[i].coding;
        *file        = found;
        return;
    }
}

/* --- finding ---------------------------------------------------------------------------------------------- */

enum files_outcome files_find(const struct files_folder *folder, struct str path,
                              const struct files_rules *rules, struct files_file *out)
{
    char               name[PATH_MAX], opened[PATH_MAX];
    size_t             len     = path.len;
    bool               is_root = !len || path.at[len - 1] == '/';
    const char        *index   = is_root && rules->index ? rules->index : "";
    enum files_outcome outcome = check_path(path, rules);

    if (outcome != FILES_FOUND)
        return outcome;
    if (is_root && (!rules->index || len + strlen(rules->index) >= sizeof(name)))
        return FILES_MISSING;
    memcpy(name, len ? path.at : "", len);
    memcpy(name + len, index, strlen(index) + 1);
    len += strlen(index);
    memcpy(opened, name, len + 1);
    outcome = open_file(folder, opened, out);
    if (outcome != FILES_FOUND)
        return is_root && outcome == FILES_IS_FOLDER ? FILES_MISSING : outcome;
    out->name = is_root ? str_of(rules->index) : path;
    if (rules->codings)
        prefer_sister(folder, name, len, rules->codings, out);
    return FILES_FOUND;
}

/* --- what the client accepts ---------------------------------------------------------------------------------- */

struct str files_coding_name(enum files_coding coding)
{
    switch (coding) {
    case FILES_BR: return STR("br");
    case FILES_ZSTD: return STR("zstd");
    case FILES_GZIP: return STR("gzip");
    case FILES_PLAIN: break;
    }
    return STR("");
}

/* RFC 9110, 12.4.2: "q=0" and "q=0.000" say no. */
static bool says_no(struct str parameters)
{
    struct str parameter;

    while (str_next(&parameters, ';', &parameter)) {
        if (parameter.len < 3 || (parameter.at[0] | 0x20) != 'q' || parameter.at[1] != '=')
            continue;
        for (size_t i = 2; i < parameter.len; i++)
            if (parameter.at[i] != '0' && parameter.at[i] != '.')
                return false;
        return true;
    }
    return false;
}

unsigned files_codings(const struct request *request)
{
    const struct field *accepts = request_field(request, FIELD_ACCEPT_ENCODING);
    struct str          rest    = accepts ? accepts->value : STR_NONE, element;
    unsigned            codings = 0;

    while (str_next(&rest, ',', &element)) {
        size_t     end  = str_find(element, ';');
        struct str name = str_trim(str_make(element.at, end));

        if (says_no(str_from(element, end)))
            continue;
        for (unsigned i = 0; i < ARRAY_LEN(sisters); i++)
            if (str_is_nocase(name, files_coding_name(sisters[i].coding)))
                codings |= sisters[i].coding;
    }
    return codings;
}
