#include "data/pg_lib.h"

#include <dlfcn.h>
#include <string.h>

#include "base/compiler.h"
#include "base/err.h"

struct entry {
    const char *name;
    size_t      offset;
};

static const struct entry ENTRIES[] = {
#define ENTRY(name) { "PQ" #name, offsetof(struct pg_lib, name) },
    PG_LIB_FUNCTIONS(ENTRY)
#undef ENTRY
};

/* ISO C has no cast from an object pointer to that of a function. */
static void set_function(struct pg_lib *lib, size_t offset, void *function)
{
    memcpy((char *)lib + offset, &function, sizeof(function));
}

/* NODELETE: libpq gives OpenSSL an object that it never takes back, so unloading it would lose that. */
int pg_lib_load(struct pg_lib *out, struct err *err)
{
    *out = (struct pg_lib){ .handle = dlopen(SRV_LIBPQ, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
    if (!out->handle)
        return err_set(err, ERR_NOT_FOUND,
                       "PostgreSQL needs %s, which is not here (Debian: libpq5)", SRV_LIBPQ);
    for (size_t i = 0; i < ARRAY_LEN(ENTRIES); i++) {
        void *function = dlsym(out->handle, ENTRIES[i].name);

        if (!function) {
            out->handle = NULL;
            return err_set(err, ERR_NOT_FOUND, "%s is too old: it has no %s (14 is needed)",
                           SRV_LIBPQ, ENTRIES[i].name);
        }
        set_function(out, ENTRIES[i].offset, function);
    }
    set_function(out, offsetof(struct pg_lib, sendPipelineSync),
                 dlsym(out->handle, "PQsendPipelineSync"));
    return 0;
}
