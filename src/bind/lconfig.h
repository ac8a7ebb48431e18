/* bind/lconfig.h - config.lua: a Lua file that returns a table of settings. */
#ifndef BIND_LCONFIG_H
#define BIND_LCONFIG_H

struct err;

/* Called for each key of the table with its value as text ("true", "30", "5s"; a list of texts is
 * "a,b", as a flag has it; a list of tables of texts "a b,x=c y=d"; a table of values by name is
 * "a=1,b=2"; NULL: an empty table). Not 0 stops. */
typedef int (*lconfig_fn)(const char *name, const char *value, void *arg, struct err *err);

/* Runs the file in a Lua state of its own and hands its settings over in
 * the order of their names. ERR_NOT_FOUND: no such file; ERR_INVALID: it does not load, or does not
 * return a table of texts, numbers, booleans and tables of texts. The text names file and line. */
int lconfig_read(const char *path, lconfig_fn each, void *arg, struct err *err);

#endif
