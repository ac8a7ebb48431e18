#include "cli/usage.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "server/config.h"

static const char COMMANDS[] =
    "srv - an HTTP application server programmed in Lua\n\n"
    "  srv APP [flags]          serve an app folder, one Lua file, or a folder of files\n"
    "  srv run APP [flags]      the same\n"
    "  srv test [APP] [specs]   run an app's busted specs in the server's own runtime\n"
    "  srv new NAME             a folder with a new app: minimal, api, site or chat\n"
    "  srv cert --dev           a certificate for development, so that https://localhost works\n"
    "  srv check [APP]          look for mistakes: file, line, and the way out\n"
    "  srv routes [APP]         list an app's routes: method, path, middleware, file:line\n"
    "  srv repl [PID]           a prompt into a running server\n"
    "  srv types [APP]          write srv's types into the app's folder, for your editor\n"
    "  srv bench URL            load a server: latency percentiles, requests/s, a page of it\n"
    "  srv doctor APP           what slows an app down, by file and line, and what to do\n"
    "  srv flame APP            where an app's time goes: a flame graph, function by function\n"
    "  srv completion SHELL     what bash, zsh or fish needs to complete all this\n"
    "  srv --version            what this is built of\n\n"
    "Each command tells of its own options with --help.\n\n"
    "Flags of run (also SRV_NAME in the environment, and name in config.lua beside app.lua):\n";

int usage_error(const char *format, ...)
{
    va_list args;

    fputs("srv: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\n     srv --help lists the commands and flags\n", stderr);
    return CLI_USAGE;
}

int usage_help(void)
{
    struct buf flags;

    buf_init(&flags, 1 << 16);
    config_describe(&flags);
    fputs(COMMANDS, stdout);
    fwrite(flags.at, 1, flags.len, stdout);
    buf_fini(&flags);
    return CLI_DONE;
}
