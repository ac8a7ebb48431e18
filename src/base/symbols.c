#include "base/symbols.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct function {
    uintptr_t   low, high;
    const char *name, *file; /* in the mapped program; FILE: NULL where it is not known */
};

struct symbols {
    const char      *image; /* the program's file, mapped; NULL: it cannot be read */
    size_t           bytes;
    struct function *functions; /* by address */
    size_t           count;
};

/* --- the file ------------------------------------------------------------------------------------- */

static void map_program(struct symbols *symbols)
{
    int         fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat about;
    void       *image;

    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && (size_t)about.st_size > sizeof(ElfW(Ehdr))) {
        image = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (image != MAP_FAILED) {
            symbols->image = image;
            symbols->bytes = (size_t)about.st_size;
        }
    }
    close(fd);
}

static bool has(const struct symbols *symbols, uint64_t at, uint64_t bytes)
{
    return at <= symbols->bytes && bytes <= symbols->bytes - at;
}

static const ElfW(Shdr) * section(const struct symbols *symbols, unsigned index)
{
    const ElfW(Ehdr) *head = (const void *)symbols->image;

    if (index >= head->e_shnum ||
        !has(symbols, head->e_shoff, (uint64_t)head->e_shnum * sizeof(ElfW(Shdr))))
        return NULL;
    return (const ElfW(Shdr) *)(const void *)(symbols->image + head->e_shoff) + index;
}

static const ElfW(Shdr) * find_table(const struct symbols *symbols)
{
    const ElfW(Shdr) * found;

    for (unsigned i = 0; (found = section(symbols, i)); i++)
        if (found->sh_type == SHT_SYMTAB && has(symbols, found->sh_offset, found->sh_size))
            return found;
    return NULL;
}

/* --- functions by address --------------------------------------------------------------------------- */

static int note_base(struct dl_phdr_info *info, size_t size, void *arg)
{
    *(uintptr_t *)arg = info->dlpi_addr;
    return 1; /* the program is the first */
}

static int by_address(const void *a, const void *b)
{
    const struct function *left = a, *right = b;

    return (left->low > right->low) - (left->low < right->low);
}

/* Static functions stand behind the name of their file, all others behind an empty one. */
static void take_functions(struct symbols *symbols, const ElfW(Shdr) * table, const char *texts,
                           uintptr_t base)
{
    const ElfW(Sym) *symbol = (const void *)(symbols->image + table->sh_offset);
    size_t      count       = table->sh_size / sizeof(*symbol);
    const char *file        = NULL;

    for (size_t i = 0; i < count; i++, symbol++) {
        const char *name = texts + symbol->st_name;
        uintptr_t   low  = base + symbol->st_value;
        unsigned    type = symbol->st_info & 0xf; /* ELF32_ST_TYPE, the same for both */

        if (type == STT_FILE)
            file = *name ? name : NULL;
        else if (type == STT_FUNC && symbol->st_size > 0)
            symbols->functions[symbols->count++] =
                (struct function){ low, low + symbol->st_size, name, file };
    }
}

/* A file's functions lie together: what is between two of one file is of it. */
static void guess_files(struct symbols *symbols)
{
    struct function *functions = symbols->functions;
    const char      *before    = NULL;
    size_t           from      = 0;

    for (size_t i = 0; i < symbols->count; i++) {
        const char *file = functions[i].file;

        if (!file)
            continue;
        for (size_t j = from; before && strcmp(before, file) == 0 && j < i; j++)
            functions[j].file = file;
        before = file;
        from   = i + 1;
    }
}

static void read_table(struct symbols *symbols)
{
    const ElfW(Shdr) *table = find_table(symbols);
    const ElfW(Shdr) *texts = table ? section(symbols, table->sh_link) : NULL;
    uintptr_t base          = 0;

    if (!texts || !has(symbols, texts->sh_offset, texts->sh_size))
        return;
    symbols->functions = calloc(table->sh_size / sizeof(ElfW(Sym)) + 1, sizeof(struct function));
    if (!symbols->functions)
        return;
    dl_iterate_phdr(note_base, &base);
    take_functions(symbols, table, symbols->image + texts->sh_offset, base);
    qsort(symbols->functions, symbols->count, sizeof(struct function), by_address);
    guess_files(symbols);
}

struct symbols *symbols_open(void)
{
    struct symbols *symbols = calloc(1, sizeof(*symbols));

    if (!symbols)
        return NULL;
    map_program(symbols);
    if (symbols->image)
        read_table(symbols);
    return symbols;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    free(symbols->functions);
    if (symbols->image)
        munmap((void *)symbols->image, symbols->bytes);
    free(symbols);
}

/* --- finding ------------------------------------------------------------------------------------------ */

static const struct function *find_own(const struct symbols *symbols, uintptr_t address)
{
    size_t low = 0, high = symbols->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (symbols->functions[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= symbols->functions[low - 1].high)
        return NULL;
    return &symbols->functions[low - 1];
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The nearest name below may be another function's: only one that reaches up to ADDRESS counts. */
static void find_foreign(uintptr_t address, struct symbol *found)
{
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;

    if (!dladdr1((void *)address, &info, (void **)&symbol, RTLD_DL_SYMENT))
        return;
    snprintf(found->file, sizeof(found->file), "%s", base_name(info.dli_fname));
    found->named =
        info.dli_sname && symbol && address - (uintptr_t)info.dli_saddr < symbol->st_size;
    if (found->named)
        snprintf(found->name, sizeof(found->name), "%s", info.dli_sname);
    else
        snprintf(found->name, sizeof(found->name), "%.100s+0x%zx", found->file,
                 (size_t)(address - (uintptr_t)info.dli_fbase));
}

/* Compilers cut functions: "name.part.0", "name.cold" are of `name`. */
static void copy_name(char *to, size_t room, const char *name)
{
    size_t len = strcspn(name, ".");

    snprintf(to, room, "%.*s", (int)(len ? len : strlen(name)), name);
}

void symbols_find(const struct symbols *symbols, uintptr_t address, struct symbol *found)
{
    const struct function *own = find_own(symbols, address);

    *found = (struct symbol){ .name = "?" };
    if (!own) {
        find_foreign(address, found);
        return;
    }
    found->named = true;
    copy_name(found->name, sizeof(found->name), own->name);
    snprintf(found->file, sizeof(found->file), "%s", own->file ? own->file : "");
}

bool symbols_range(const struct symbols *symbols, const char *name, uintptr_t *low, uintptr_t *high)
{
    for (size_t i = 0; i < symbols->count; i++) {
        if (strcmp(symbols->functions[i].name, name) != 0)
            continue;
        *low  = symbols->functions[i].low;
        *high = symbols->functions[i].high;
        return true;
    }
    return false;
}
