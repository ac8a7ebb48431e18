/* vm/native.h - Lua modules in shared objects.
 *
 * dlopen() of a path that was loaded before gives the old code, however often the file was replaced.
 * So the app's own modules are loaded from a copy that this VM alone has: a reload brings the new
 * code, and no two workers share its static variables. */
#ifndef VM_NATIVE_H
#define VM_NATIVE_H

#include <stdbool.h>

#include <lua.h>

struct err;
struct native_list;

struct native_list *native_list_new(void); /* NULL: no memory */
/* Unloads them. After lua_close(): finalizers may live in them. NULL is fine. */
void native_list_free(struct native_list *natives);

/* The function SYMBOL ("luaopen_a_b") of the shared object at PATH, loading it unless LIST has it.
 * OWN_COPY: as above. NULL, with an error in words that tell what is wrong with the file: another
 * architecture, another version of Lua, no such function (ERR_NOT_FOUND). */
lua_CFunction native_load(struct native_list *natives, const char *path, const char *symbol,
                          bool own_copy, struct err *err);

#endif
