#include "server/version.h"

#include "bind/script.h"

void version_print(FILE *out)
{
    fprintf(out, "srv %s\n%s\n", SRV_VERSION, script_luajit_version());
#ifndef SRV_CHECKHOOK
    fputs("LuaJIT is the distribution's: a compiled loop can neither be named nor stopped\n", out);
#endif
}
