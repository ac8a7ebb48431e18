/* base/err.h - how the world's faults are told: a code to act on, one line for a person.
 *
 * A function that can fail for reasons outside the program returns 0 or one of these codes and
 * fills the caller's struct err (NULL is fine). Programming mistakes are asserts. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/compiler.h"

enum err_code {
    ERR_NONE        = 0,
    ERR_MEMORY      = -1, /* allocation failed or a memory bound was reached */
    ERR_SYSTEM      = -2, /* a system call failed; the text has strerror() */
    ERR_INVALID     = -3, /* malformed input */
    ERR_TOO_LARGE   = -4, /* a stated bound was exceeded */
    ERR_NOT_FOUND   = -5,
    ERR_EXISTS      = -6,
    ERR_IN_USE      = -7, /* an address is taken */
    ERR_BUSY        = -8, /* a queue is full: try again later */
    ERR_CLOSED      = -9, /* the other side has gone */
    ERR_TIMEOUT     = -10,
    ERR_CANCELLED   = -11,
    ERR_UNSUPPORTED = -12,
    ERR_DENIED      = -13, /* the file system forbids it */
    ERR_NOT_EMPTY   = -14, /* a folder has something in it */
    ERR_NO_SPACE    = -15, /* the disk is full, or a quota */
    ERR_LAST        = ERR_NO_SPACE,
};

struct err {
    enum err_code code;
    char          text[512]; /* one line, no trailing newline */
};

/* Formats the text and returns CODE, so that a caller can `return err_set(err, ...)`. */
int err_set(struct err *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for a failed system call: ": " and strerror(errno) follow the text; ERR_SYSTEM, or
 * ERR_NOT_FOUND, ERR_IN_USE, ERR_EXISTS where errno says so. */
int err_set_errno(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* "busy" for ERR_BUSY: a stable lower-case word. */
const char *err_name(int code);

#endif
