/* base/log_line.h - the payload of an ordinary line: how log_write() packs a message and its fields
 * into bytes, and how the log's thread makes text of them. For base/log.c alone. */
#ifndef BASE_LOG_LINE_H
#define BASE_LOG_LINE_H

#include <stdarg.h>

#include "base/log.h"

extern const struct log_kind LOG_LINE_KIND;

/* So that a va_list can be passed on and advanced, whatever type it has. */
struct log_args {
    va_list list;
};

/* Adds the fields of a "key=%s key=%d" FORMAT to LINE. */
void log_line_format(struct log_line *line, const char *format, struct log_args *args);

/* What stands before a record's own members, and the line's end: `{"level":30,...` and `}\n`, or
 * the time of day. PID and HOSTNAME (NULL: none) go into JSON only. */
void log_line_open_json(struct buf *out, unsigned level, int64_t wall_ms, int pid,
                        const char *hostname);
void log_line_open_pretty(struct buf *out, int64_t wall_ms, bool colours);

/* "WARN " in its colour. */
void log_line_level(struct buf *out, unsigned level, bool colours);

#endif
