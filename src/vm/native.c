#include "vm/native.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/err.h"

enum { PATH_BYTES = 512 };

struct native {
    struct native *next;
    void          *object; /* dlopen()'s */
    char           path[];
};

struct native_list {
    struct native *first;
};

struct native_list *native_list_new(void)
{
    return calloc(1, sizeof(struct native_list));
}

void native_list_free(struct native_list *natives)
{
    while (natives && natives->first) {
        struct native *native = natives->first;

        natives->first = native->next;
        dlclose(native->object);
        free(native);
    }
    free(natives);
}

/* --- is it for us? ------------------------------------------------------------------------------- */

struct machine {
    unsigned    number;
    const char *name;
};

static const struct machine MACHINES[] = {
    { EM_X86_64, "x86-64" },  { EM_AARCH64, "arm64" }, { EM_386, "32-bit x86" },
    { EM_ARM, "32-bit arm" }, { EM_RISCV, "RISC-V" },  { EM_PPC64, "ppc64" },
    { EM_S390, "s390x" },     { EM_MIPS, "MIPS" },     { EM_LOONGARCH, "LoongArch" },
};

static const char *machine_name(unsigned number)
{
    for (size_t i = 0; i < ARRAY_LEN(MACHINES); i++)
        if (MACHINES[i].number == number)
            return MACHINES[i].name;
    return "another architecture";
}

/* The same for every architecture up to e_machine. */
static int read_header(const char *path, Elf64_Ehdr *header, struct err *err)
{
    int     fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return err_set_errno(err, "%s", path);
    len = read(fd, header, sizeof(*header));
    close(fd);
    if (len < (ssize_t)sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return err_set(err, ERR_INVALID, "%s is no shared object", path);
    return 0;
}

static int check_machine(const char *path, struct err *err)
{
    Elf64_Ehdr ours, theirs;

    if (read_header(path, &theirs, err) != 0)
        return err->code;
    if (read_header("/proc/self/exe", &ours, err) != 0)
        return err->code;
    if (theirs.e_machine != ours.e_machine || theirs.e_ident[EI_CLASS] != ours.e_ident[EI_CLASS])
        return err_set(err, ERR_UNSUPPORTED, "%s is built for %s, and srv runs on %s", path,
                       machine_name(theirs.e_machine), machine_name(ours.e_machine));
    return 0;
}

struct newer {
    const char *symbol, *version;
};

/* Functions that a module for a newer Lua needs sooner or later, newest first. */
static const struct newer NEWER[] = {
    { "lua_newuserdatauv", "5.4" },
    { "lua_setiuservalue", "5.4" },
    { "lua_closeslot", "5.4" },
    { "lua_rotate", "5.3" },
    { "lua_geti", "5.3" },
    { "lua_isinteger", "5.3" },
    { "luaL_checkversion_", "5.2 or newer" },
    { "lua_callk", "5.2 or newer" },
    { "lua_pcallk", "5.2 or newer" },
    { "lua_setglobal", "5.2 or newer" },
    { "lua_getglobal", "5.2 or newer" },
    { "lua_rawlen", "5.2 or newer" },
    { "luaL_checkinteger_", "5.2 or newer" },
    { "lua_getuservalue", "5.2 or newer" },
};

/* WHY is dlerror()'s text about LOADED, which is PATH or its copy. */
static int explain(const char *path, const char *loaded, const char *why, struct err *err)
{
    const char *undefined = strstr(why, "undefined symbol: ");
    const char *symbol    = undefined ? undefined + strlen("undefined symbol: ") : "";

    for (size_t i = 0; i < ARRAY_LEN(NEWER); i++) {
        size_t len = strlen(NEWER[i].symbol);

        if (strncmp(symbol, NEWER[i].symbol, len) == 0 && strchr(" \n,;", symbol[len]))
            return err_set(err, ERR_UNSUPPORTED,
                           "%s is built for Lua %s (it needs %s), and srv runs Lua 5.1: install or "
                           "build the module for Lua 5.1",
                           path, NEWER[i].version, NEWER[i].symbol);
    }
    if (strncmp(why, loaded, strlen(loaded)) == 0 && strncmp(why + strlen(loaded), ": ", 2) == 0)
        why += strlen(loaded) + 2;
    return err_set(err, ERR_SYSTEM, "%s: %s", path, why);
}

/* --- loading --------------------------------------------------------------------------------------- */

static void *load(const char *loaded, const char *path, struct err *err)
{
    void *object = dlopen(loaded, RTLD_NOW | RTLD_LOCAL);

    if (!object)
        explain(path, loaded, dlerror(), err);
    return object;
}

static int copy_bytes(int from, int to)
{
    struct stat info;
    off_t       at = 0;

    if (fstat(from, &info) != 0)
        return -1;
    while (at < info.st_size) {
        ssize_t n = sendfile(to, from, &at, (size_t)(info.st_size - at));

        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            break; /* it became shorter */
    }
    return 0;
}

/* A file of its own under COPY, a mkstemps() pattern. */
static int make_copy(const char *path, char *copy, struct err *err)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to   = mkostemps(copy, (int)strlen(".so"), O_CLOEXEC);
    int rc   = 0;

    if (from < 0)
        rc = err_set_errno(err, "%s", path);
    else if (to < 0)
        rc = err_set_errno(err, "a private copy of %s (in TMPDIR or /tmp)", path);
    else if (copy_bytes(from, to) != 0)
        rc = err_set_errno(err, "copying %s to %s", path, copy);
    if (rc != 0 && to >= 0)
        unlink(copy);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return rc;
}

/* The name goes at once; the mapping keeps the bytes. */
static void *load_copy(const char *path, struct err *err)
{
    const char *folder = getenv("TMPDIR");
    char        copy[PATH_BYTES];
    void       *object;

    snprintf(copy, sizeof(copy), "%s/srv-module-XXXXXX.so", folder && *folder ? folder : "/tmp");
    if (make_copy(path, copy, err) != 0)
        return NULL;
    object = load(copy, path, err);
    unlink(copy);
    return object;
}

static struct native *find(struct native_list *natives, const char *path)
{
    for (struct native *native = natives->first; native; native = native->next)
        if (strcmp(native->path, path) == 0)
            return native;
    return NULL;
}

static struct native *add(struct native_list *natives, const char *path, void *object)
{
    size_t         bytes  = strlen(path) + 1;
    struct native *native = malloc(sizeof(*native) + bytes);

    if (!native)
        return NULL;
    native->object = object;
    memcpy(native->path, path, bytes);
    native->next   = natives->first;
    natives->first = native;
    return native;
}

static struct native *open_native(struct native_list *natives, const char *path, bool own_copy,
                                  struct err *err)
{
    struct native *native;
    void          *object;

    if (check_machine(path, err) != 0)
        return NULL;
    object = own_copy ? load_copy(path, err) : load(path, path, err);
    if (!object)
        return NULL;
    native = add(natives, path, object);
    if (!native) {
        dlclose(object);
        err_set(err, ERR_MEMORY, "%s", path);
    }
    return native;
}

lua_CFunction native_load(struct native_list *natives, const char *path, const char *symbol,
                          bool own_copy, struct err *err)
{
    struct native *native = find(natives, path);
    lua_CFunction  function;

    if (!native)
        native = open_native(natives, path, own_copy, err);
    if (!native)
        return NULL;
    *(void **)&function = dlsym(native->object, symbol); /* POSIX's way to make a function of it */
    if (!function)
        err_set(err, ERR_NOT_FOUND, "%s has no function %s", path, symbol);
    return function;
}
