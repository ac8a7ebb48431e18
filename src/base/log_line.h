/* base/log_line.h - one line: how a message and its fields are packed into bytes, and how the log's
 * thread makes text of them. Who logs includes base/log.h. */
#ifndef BASE_LOG_LINE_H
#define BASE_LOG_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* pino's numbers. */
enum log_level {
    LOG_TRACE = 10,
    LOG_DEBUG = 20, /* tells the story */
    LOG_INFO  = 30, /* marks a life: start, reload, stop */
    LOG_WARN  = 40, /* hurt one peer */
    LOG_ERROR = 50, /* needs a person */
    LOG_FATAL = 60, /* the process ends */
    LOG_OFF   = 70, /* as the log's level: nothing is written */
};

enum { LOG_PAYLOAD_MAX = 24 * 1024 }; /* of one record; longer values are cut */

struct log_line {
    struct buf     payload; /* owned until log_line_end() */
    enum log_level level;
};

void log_line_begin(struct log_line *line, enum log_level level, struct str message);
/* Cut, and marked as cut, when the record would become too large. */
void log_line_text(struct log_line *line, struct str key, struct str value);
/* JSON is taken as it is; what would not fit is replaced by a string that says so. */
void log_line_json(struct log_line *line, struct str key, struct str json);

/* How a kind's records become text. Both run on the log's thread. */
struct log_kind {
    /* Members behind level, time, pid and hostname: each begins with a comma. */
    void (*json)(struct buf *out, const void *payload, size_t len);
    /* What follows the time of day; no line end. */
    void (*pretty)(struct buf *out, const void *payload, size_t len, bool colours);
};

/* --- for base/log.c ------------------------------------------------------------------------------ */

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
