#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    err->code = (enum err_code)code;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    return code;
}

static int code_of_errno(int number)
{
    switch (number) {
    case ENOENT: return ERR_NOT_FOUND;
    case EEXIST: return ERR_EXISTS;
    case EADDRINUSE: return ERR_IN_USE;
    case ENOMEM: return ERR_MEMORY;
    case ETIMEDOUT: return ERR_TIMEOUT;
    default: return ERR_SYSTEM;
    }
}

int err_set_errno(struct err *err, const char *format, ...)
{
    int     number = errno;
    int     code   = code_of_errno(number);
    int     used;
    va_list args;

    if (!err)
        return code;
    err->code = (enum err_code)code;
    va_start(args, format);
    used = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof(err->text))
        snprintf(err->text + used, sizeof(err->text) - (size_t)used, ": %s", strerror(number));
    return code;
}

const char *err_name(int code)
{
    switch (code) {
    case ERR_NONE: return "none";
    case ERR_MEMORY: return "memory";
    case ERR_SYSTEM: return "system";
    case ERR_INVALID: return "invalid";
    case ERR_TOO_LARGE: return "too_large";
    case ERR_NOT_FOUND: return "not_found";
    case ERR_EXISTS: return "exists";
    case ERR_IN_USE: return "in_use";
    case ERR_BUSY: return "busy";
    case ERR_CLOSED: return "closed";
    case ERR_TIMEOUT: return "timeout";
    case ERR_CANCELLED: return "cancelled";
    case ERR_UNSUPPORTED: return "unsupported";
    case ERR_DENIED: return "denied";
    case ERR_NOT_EMPTY: return "not_empty";
    case ERR_NO_SPACE: return "no_space";
    default: return "unknown";
    }
}
