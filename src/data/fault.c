#include "data/fault.h"

#include <stdarg.h>
#include <stdio.h>

int fault_set(struct fault *fault, const char *code, const char *format, ...)
{
    va_list args;

    fault_clear(fault);
    fault->code = code;
    va_start(args, format);
    vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    for (char *at = fault->text; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return -1;
}
