/* cli/cli.h - argv in, exit status out: which command is meant (cli/usage.h has the statuses). */
#ifndef CLI_CLI_H
#define CLI_CLI_H

int cli_main(int argc, char **argv);

#endif
