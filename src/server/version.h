/* server/version.h - what this binary is built of. */
#ifndef SERVER_VERSION_H
#define SERVER_VERSION_H

#include <stdio.h>

#define SRV_VERSION "0.1.0"

/* Version, LuaJIT and libraries, and what is missing where the stock LuaJIT was linked. */
void version_print(FILE *out);

#endif
