/* embed - the Lua files of the server as bytecode in a C table; a syntax error ends the build.
 *
 *     embed OUT.c ROOT FILE.lua...
 *
 * ROOT/srv/web/app.lua becomes the module "srv.web.app", ROOT/srv/init.lua "srv". Line numbers are
 * kept, for tracebacks. Built with the LuaJIT that the server is linked with, so the bytecode fits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

enum { NAME_BYTES = 256, BYTES_PER_LINE = 24 };

struct output {
    FILE    *file;
    unsigned count;
};

static int write_bytes(lua_State *L, const void *bytes, size_t len, void *arg)
{
    struct output       *out = arg;
    const unsigned char *at  = bytes;

    for (size_t i = 0; i < len; i++, out->count++)
        fprintf(out->file, "%s%u,", out->count % BYTES_PER_LINE == 0 ? "\n    " : "", at[i]);
    return ferror(out->file);
}

/* "srv/web/app.lua" -> "srv.web.app", "srv/init.lua" -> "srv" */
static void module_name(const char *path, char *name)
{
    char *end;

    snprintf(name, NAME_BYTES, "%s", path);
    end = strrchr(name, '.');
    if (end)
        *end = '\0';
    end = strrchr(name, '/');
    if (end && strcmp(end, "/init") == 0)
        *end = '\0';
    for (char *at = name; *at; at++)
        if (*at == '/')
            *at = '.';
}

static char *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long  size;

    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    text = malloc((size_t)size + 1);
    if (text)
        *len = fread(text, 1, (size_t)size, file);
    fclose(file);
    return text;
}

static int compile(lua_State *L, const char *path, const char *shown)
{
    char   chunk_name[NAME_BYTES + 1];
    size_t len;
    char  *text = read_file(path, &len);
    int    status;

    if (!text) {
        perror(path);
        return 1;
    }
    snprintf(chunk_name, sizeof(chunk_name), "=%s", shown);
    status = luaL_loadbuffer(L, text, len, chunk_name);
    if (status != 0)
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    free(text);
    return status;
}

static int embed(lua_State *L, struct output *out, const char *path, const char *shown, int index)
{
    if (compile(L, path, shown) != 0)
        return 1;
    out->count = 0;
    fprintf(out->file, "static const char CODE_%d[] = {", index);
    if (lua_dump(L, write_bytes, out) != 0)
        return 1;
    fprintf(out->file, "\n};\n");
    lua_settop(L, 0);
    return 0;
}

static void write_table(FILE *file, char **paths, int count, size_t root_len)
{
    char name[NAME_BYTES];

    fprintf(file, "\nconst struct embedded EMBEDDED[] = {\n");
    for (int i = 0; i < count; i++) {
        module_name(paths[i] + root_len + 1, name);
        fprintf(file, "    { \"%s\", \"%s\", CODE_%d, sizeof(CODE_%d) },\n", name,
                paths[i] + root_len + 1, i, i);
    }
    fprintf(file, "    { 0, 0, 0, 0 },\n};\n");
}

int main(int argc, char **argv)
{
    lua_State    *L   = luaL_newstate();
    struct output out = { argc > 2 ? fopen(argv[1], "w") : NULL, 0 };
    int           status;

    if (!L || !out.file) {
        fprintf(stderr, "usage: embed OUT.c ROOT FILE.lua...\n");
        return 2;
    }
    fprintf(out.file, "/* Made by cmake/embed.c. */\n#include \"bind/embedded.h\"\n\n");
    status = 0;
    for (int i = 3; i < argc && status == 0; i++)
        status = embed(L, &out, argv[i], argv[i] + strlen(argv[2]) + 1, i - 3);
    write_table(out.file, argv + 3, argc - 3, strlen(argv[2]));
    if (fclose(out.file) != 0)
        status = 1;
    lua_close(L);
    if (status != 0)
        remove(argv[1]);
    return status;
}
