#include "vm/native.h"

#include <dirent.h>
#include <elf.h>

#include "support/check.h"
#include "support/modules.h"
#include "support/vm_fixture.h"

static char folder[64];
static char path[PATH_MAX];

static void begin(const char *name)
{
    strcpy(folder, "/tmp/srv-native-XXXXXX");
    make_folder(folder);
    snprintf(path, sizeof(path), "%s/counter.so", folder);
    copy_module(name, path);
}

static void end(void)
{
    unlink(path);
    rmdir(folder);
}

/* Calls a function of the module that LIST gives for `path`; the number it returns. */
static int call(struct native_list *list, bool own_copy, const char *expression)
{
    struct fixture f;
    struct err     err;
    lua_CFunction  open = native_load(list, path, "luaopen_counter", own_copy, &err);
    int            result;

    if (!open) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    fixture_open(&f);
    lua_pushcfunction(f.vm->L, open);
    lua_call(f.vm->L, 0, 1);
    lua_setglobal(f.vm->L, "counter");
    fixture_run_lua(f.vm->L, expression);
    result = (int)lua_tointeger(f.vm->L, -1);
    fixture_close(&f);
    return result;
}

TEST(an_apps_module_is_its_vms_own)
{
    struct native_list *a = native_list_new(), *b = native_list_new();

    begin("counter_1");
    CHECK_INT(call(a, true, "return counter.next()"), 1);
    CHECK_INT(call(a, true, "return counter.next()"), 2);
    CHECK_INT(call(b, true, "return counter.next()"), 1);
    native_list_free(a);
    native_list_free(b);
    end();
}

TEST(a_replaced_file_brings_the_new_code_and_leaves_the_old)
{
    struct native_list *before = native_list_new(), *after = native_list_new();

    begin("counter_1");
    CHECK_INT(call(before, true, "return counter.version"), 1);
    copy_module("counter_2", path);
    CHECK_INT(call(after, true, "return counter.version"), 2);
    CHECK_INT(call(before, true, "return counter.version"), 1);
    native_list_free(before);
    native_list_free(after);
    end();
}

TEST(a_systems_module_is_shared)
{
    struct native_list *a = native_list_new(), *b = native_list_new();

    begin("counter_1");
    CHECK_INT(call(a, false, "return counter.next()"), 1);
    CHECK_INT(call(b, false, "return counter.next()"), 2);
    native_list_free(a);
    native_list_free(b);
    end();
}

TEST(a_file_may_hold_several_modules)
{
    struct native_list *list = native_list_new();
    struct err          err;

    begin("counter_1");
    CHECK(native_load(list, path, "luaopen_counter_inner", true, &err) != NULL);
    CHECK(native_load(list, path, "luaopen_counter_other", true, &err) == NULL);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK(strstr(err.text, "has no function luaopen_counter_other"));
    native_list_free(list);
    end();
}

static unsigned count_files(void)
{
    DIR     *dir   = opendir(folder);
    unsigned count = 0;

    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

TEST(no_copy_is_left_behind)
{
    struct native_list *list = native_list_new();
    struct err          err;

    begin("counter_1");
    setenv("TMPDIR", folder, 1);
    CHECK(native_load(list, path, "luaopen_counter", true, &err) != NULL);
    unsetenv("TMPDIR");
    CHECK_INT(count_files(), 1);
    native_list_free(list);
    end();
}

static void refuse(const char *words)
{
    struct native_list *list = native_list_new();
    struct err          err  = { 0 };

    CHECK(native_load(list, path, "luaopen_counter", true, &err) == NULL);
    if (!strstr(err.text, words))
        fprintf(stderr, "got: %s\n", err.text);
    CHECK(strstr(err.text, words));
    native_list_free(list);
}

TEST(what_is_no_shared_object_is_told_so)
{
    begin("counter_1");
    write_file(path, "return {}\n", 10);
    refuse("is no shared object");
    unlink(path);
    refuse("No such file");
    end();
}

TEST(another_architecture_is_named)
{
    size_t      len;
    char       *bytes;
    Elf64_Ehdr *header;

    begin("counter_1");
    bytes             = read_whole(path, &len);
    header            = (Elf64_Ehdr *)bytes;
    header->e_machine = header->e_machine == EM_S390 ? EM_RISCV : EM_S390;
    write_file(path, bytes, len);
    free(bytes);
    refuse("is built for s390x, and srv runs on ");
    end();
}

TEST(another_version_of_lua_is_named)
{
    begin("newer_lua");
    refuse("is built for Lua 5.4 (it needs lua_newuserdatauv), and srv runs Lua 5.1");
    end();
}

int main(void)
{
    return check_run();
}
