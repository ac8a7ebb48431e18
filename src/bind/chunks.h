/* bind/chunks.h - Lua files as functions, each version compiled once for the whole process.
 *
 * The first VM that loads a file compiles it and leaves the bytecode here; the other workers, and
 * the next generations while the file stays as it is, load that: 100 files take 1 ms instead of 8.
 * Bytecode is only ever our own: files are read as text, since bytecode from outside could break
 * a VM. Any thread. */
#ifndef BIND_CHUNKS_H
#define BIND_CHUNKS_H

#include <stdbool.h>

#include <lua.h>

struct chunks;
struct err;

enum {
    CHUNKS_FILE_BYTES_MAX = 16 * 1024 * 1024,
    CHUNKS_KEPT_MAX       = 4096, /* files; the rest is compiled each time */
};

int chunks_open(struct chunks **out, struct err *err);
/* No VM may load any more; functions that were loaded live on. NULL is fine. */
void chunks_close(struct chunks *chunks);

/* Leaves the function of the file at PATH on L, or a message (false). NAME is the chunk's
 * ("@routes/news.lua"), the same for the same path each time. CHUNKS NULL: nothing is kept. Raises
 * on lack of memory. */
bool chunks_load(lua_State *L, struct chunks *chunks, const char *path, const char *name);

/* Whether a file that was loaded lies, or lay, below FOLDER. */
bool chunks_lie_in(struct chunks *chunks, const char *folder);

#endif
