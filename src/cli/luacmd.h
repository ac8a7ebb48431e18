/* cli/luacmd.h - commands written in Lua (lua/srv/cli/NAME.lua): they run in a task on a loop of
 * their own, so that all of srv may wait in them. */
#ifndef CLI_LUACMD_H
#define CLI_LUACMD_H

#include <stdbool.h>

/* Whether there is a command of this name. */
bool luacmd_is(const char *name);

/* Runs srv.cli.NAME: its module is a function(args, app_file) -> exit status. ARGV begins behind the
 * command's name. */
int luacmd_main(const char *name, int argc, char **argv);

#endif
