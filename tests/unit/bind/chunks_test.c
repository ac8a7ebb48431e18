#include "bind/chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "support/check.h"

static char path[64];

/* Under a new inode each time, as editors save. */
static void save(const char *text)
{
    char  temporary[80];
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/chunks_test.%d.lua", (int)getpid());
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    file = fopen(temporary, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
    CHECK_INT(rename(temporary, path), 0);
}

static struct chunks *fresh(void)
{
    struct chunks *chunks;

    CHECK_INT(chunks_open(&chunks, NULL), 0);
    return chunks;
}

/* What the file returns in a VM of its own, or the message of why it does not load. */
static const char *run(struct chunks *chunks)
{
    static char text[256];
    lua_State  *L = luaL_newstate();

    luaL_openlibs(L);
    if (chunks_load(L, chunks, path, "@answer.lua"))
        lua_pcall(L, 0, 1, 0);
    snprintf(text, sizeof(text), "%s", lua_tostring(L, -1));
    lua_close(L);
    return text;
}

TEST(a_second_vm_gets_the_same_function)
{
    struct chunks *chunks = fresh();

    save("return 'one'");
    CHECK_STR(run(chunks), "one");
    CHECK_STR(run(chunks), "one");
    chunks_close(chunks);
    unlink(path);
}

TEST(an_edit_is_seen_at_once)
{
    struct chunks *chunks = fresh();

    save("return 'one'");
    CHECK_STR(run(chunks), "one");
    save("return 'two'");
    CHECK_STR(run(chunks), "two");
    save("return 'one'");
    CHECK_STR(run(chunks), "one");
    chunks_close(chunks);
    unlink(path);
}

TEST(errors_of_kept_bytecode_name_file_and_line)
{
    struct chunks *chunks = fresh();

    save("local t\n\nreturn t.x");
    CHECK(strstr(run(chunks), "answer.lua:3:") != NULL);
    CHECK(strstr(run(chunks), "answer.lua:3:") != NULL);
    chunks_close(chunks);
    unlink(path);
}

TEST(what_does_not_compile_is_told_each_time)
{
    struct chunks *chunks = fresh();

    save("return = 1");
    CHECK(strstr(run(chunks), "answer.lua:1:") != NULL);
    CHECK(strstr(run(chunks), "answer.lua:1:") != NULL);
    chunks_close(chunks);
    unlink(path);
    CHECK(strstr(run(NULL), "cannot read") != NULL);
}

TEST(bytecode_in_a_file_is_refused)
{
    struct chunks *chunks = fresh();

    save("\033LJ\002");
    CHECK(strstr(run(chunks), "bytecode") != NULL ||
          strstr(run(chunks), "attempt to load") != NULL);
    chunks_close(chunks);
    unlink(path);
}

int main(void)
{
    return check_run();
}
