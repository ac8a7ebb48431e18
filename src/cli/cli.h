/* cli/cli.h - argv in, exit status out: which command, its help, its usage errors.
 *
 * Exit status: 0 done, 1 the app or the run failed, 2 usage. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

int cli_main(int argc, char **argv);

/* "srv: " and the text on standard error, then how to get help; returns CLI_USAGE. */
int cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
