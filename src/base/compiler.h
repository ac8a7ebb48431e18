/* base/compiler.h - what C11 leaves out: container_of, likely, format checks. */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stddef.h>

#define container_of(member_ptr, type, member)                                                     \
    ((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#define likely(claim)   __builtin_expect(!!(claim), 1)
#define unlikely(claim) __builtin_expect(!!(claim), 0)

#define PRINTF_LIKE(format_index, first_arg)                                                       \
    __attribute__((format(printf, format_index, first_arg)))
#define MUST_CHECK __attribute__((warn_unused_result))

/* For what other shared objects may call: srv.h's functions. All else is hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif
