/* cli/usage.h - how commands end: exit statuses that scripts can use, usage errors, the help. */
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

#include "base/compiler.h"

enum {
    CLI_DONE   = 0,
    CLI_FAILED = 1, /* the app or the run failed */
    CLI_USAGE  = 2,
};

/* "srv: " and the text on standard error, then how to get help; returns CLI_USAGE. */
int usage_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* Commands and flags on standard output; returns CLI_DONE. */
int usage_help(void);

#endif
