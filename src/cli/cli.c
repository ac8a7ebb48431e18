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

static bool is_command(const char *word)
{
    return strcmp(word, "run") == 0 || is_one_of(word, "test", "routes", "types");
}

static int run_command(const char *name, int argc, char **argv)
{
    if (strcmp(name, "run") == 0)
        return run_main(argc, argv);
    for (int i = 0; i < argc; i++)
        if (is_one_of(argv[i], "--help", "-h", "-h"))
            return usage_help();
    return luacmd_main(name, argc, argv);
}

int cli_main(int argc, char **argv)
{
    if (argc < 2)
        return usage_help(), CLI_USAGE;
    if (is_one_of(argv[1], "--help", "-h", "help"))
        return usage_help();
    if (is_one_of(argv[1], "--version", "-V", "version"))
        return version_print(stdout), CLI_DONE;
    if (is_command(argv[1]))
        return run_command(argv[1], argc - 2, argv + 2);
    if (argv[1][0] != '-' && access(argv[1], F_OK) != 0)
        return usage_error("\"%s\" is neither a command nor an app (no such file or folder)",
                           argv[1]);
    return run_main(argc - 1, argv + 1);
}
