/* bind/lcommand.h - a command written in Lua: the module srv.cli.NAME is a function(args, app_file,
 * fault) that may wait, and returns the exit status. */
#ifndef BIND_LCOMMAND_H
#define BIND_LCOMMAND_H

struct vm;

/* ERROR is message and traceback (borrowed), or NULL. From the loop's turn, once. */
typedef void (*lcommand_fn)(int exit_status, const char *error, void *arg);

/* Starts it in a task. ARGV and FAULT are borrowed until it runs; APP_FILE is "" where the folder has no
 * app.lua, FAULT is what was wrong with the app's settings, or NULL. ON_DONE may come before this returns. */
void lcommand_start(struct vm *vm, const char *name, const char *app_file, const char *fault,
                    int argc, char **argv, lcommand_fn on_done, void *arg);

#endif
