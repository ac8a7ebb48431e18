/* cli/testwatch.h - `srv test --watch`: the specs again each time something changes. */
#ifndef CLI_TESTWATCH_H
#define CLI_TESTWATCH_H

#include <stdbool.h>

/* Whether "--watch" is among the arguments of `srv test`. */
bool testwatch_is_wanted(int argc, char **argv);

/* Runs `srv test` with these arguments but --watch in a process of its own, now and after each
 * change in the folder ROOT, until a signal ends it. Returns an exit status when ROOT cannot be
 * watched. */
int testwatch_main(const char *root, int argc, char **argv);

#endif
