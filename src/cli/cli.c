#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/luacmd.h"
#include "cli/run.h"
#include "server/config.h"
#include "server/version.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: written in Lua */
    const char *args;
    const char *help;
};

static const struct command COMMANDS[] = {
    { "run", run_main, "APP [flags]",
      "serve an app: a folder with app.lua, one file, or a folder of files" },
    { "test", NULL, "[APP] [specs]", "run an app's busted specs in the server's own runtime" },
    { "routes", NULL, "APP", "list an app's routes: method, path, middleware, file:line" },
};

int cli_usage_error(const char *format, ...)
{
    va_list args;

    fputs("srv: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\n     srv --help lists the commands and flags\n", stderr);
    return CLI_USAGE;
}

static int print_help(void)
{
    struct buf flags;

    puts("srv - an HTTP application server programmed in Lua\n\n"
         "  srv APP [flags]          serve an app folder, one Lua file, or a folder of files");
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        printf("  srv %-6s %-13s %s\n", COMMANDS[i].name, COMMANDS[i].args, COMMANDS[i].help);
    puts("  srv --version            what this is built of\n\n"
         "Flags of run (also SRV_NAME in the environment and config.lua beside app.lua):");
    buf_init(&flags, 1 << 16);
    config_describe(&flags);
    fwrite(flags.at, 1, flags.len, stdout);
    buf_fini(&flags);
    return CLI_DONE;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(COMMANDS[i].name, name) == 0)
            return &COMMANDS[i];
    return NULL;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    return command->run ? command->run(argc, argv) : luacmd_main(command->name, argc, argv);
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

int cli_main(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2)
        return print_help(), CLI_USAGE;
    if (is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0)
        return print_help();
    if (is_one_of(argv[1], "--version", "-V"))
        return version_print(stdout), CLI_DONE;
    command = find_command(argv[1]);
    if (command)
        return run_command(command, argc - 2, argv + 2);
    if (argv[1][0] != '-' && access(argv[1], F_OK) != 0)
        return cli_usage_error("\"%s\" is neither a command nor an app (no such file or folder)",
                               argv[1]);
    return run_main(argc - 1, argv + 1);
}
