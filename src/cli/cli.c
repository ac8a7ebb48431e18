#include "cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/luacmd.h"
#include "cli/run.h"
#include "cli/usage.h"
#include "server/version.h"

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

int cli_main(int argc, char **argv)
{
    if (argc < 2)
        return usage_help(), CLI_USAGE;
    if (is_one_of(argv[1], "--help", "-h", "help"))
        return usage_help();
    if (is_one_of(argv[1], "--version", "-V", "version"))
        return version_print(stdout), CLI_DONE;
    if (strcmp(argv[1], "run") == 0)
        return run_main(argc - 2, argv + 2);
    if (luacmd_is(argv[1]))
        return luacmd_main(argv[1], argc - 2, argv + 2);
    if (argv[1][0] != '-' && access(argv[1], F_OK) != 0)
        return usage_error("\"%s\" is neither a command nor an app (no such file or folder)",
                           argv[1]);
    return run_main(argc - 1, argv + 1);
}
