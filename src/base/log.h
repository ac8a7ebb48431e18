/* base/log.h - the process's log: one JSON object a line in pino's fields, or lines for a person.
 *
 * A thread that logs copies a record into its ring (base/log_ring.h) and goes on; the log's own
 * thread makes text of it, writes, and opens the file anew when told. A full ring drops the record
 * and the log says later how many: nothing that logs ever waits for a disk or a reader.
 *
 * There is one log for each process, and it is not passed about: every file may have something to
 * say, and a test needs none. Before log_open() and after log_close() warnings and worse go to
 * standard error at once, the rest nowhere.
 *
 *     log_warn("request refused", "peer=%s reason=%s after_ms=%u", peer, reason, ms);
 *
 * A line is a fixed phrase to search for, then fields: "key=%s" with %s %.*s %d %i %u %x %c %f %g and
 * the lengths l ll z, one conversion for each value, or "key=word". */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/log_line.h"
#include "base/str.h"

struct err;
struct log;

enum log_format {
    LOG_AUTO, /* pretty on a terminal, else JSON */
    LOG_JSON,
    LOG_PRETTY,
};

enum {
    LOG_RING_BYTES    = 256 * 1024, /* for each attached thread */
    LOG_CLOSE_WAIT_MS = 1000,       /* what log_close() gives a slow reader */
};

struct log_options {
    const char     *path; /* appended to, made with mode 0640; NULL: FD */
    int             fd;   /* borrowed */
    enum log_format format;
    enum log_level  level;
    const char     *hostname;   /* NULL: left out */
    bool            threadless; /* write at once on the calling thread: for a process that forks */
};

/* Becomes the process's log. The text says which file could not be opened. */
int log_open(struct log **out, const struct log_options *options, struct err *err);

/* Writes what is there, for at most LOG_CLOSE_WAIT_MS; then what the reader did not take is lost.
 * Other threads have detached. NULL is fine. */
void log_close(struct log *log);

/* The file is opened anew before the next line: it has been moved away. Any thread. */
void log_reopen(struct log *log);

void log_set_level(struct log *log, enum log_level level); /* any thread */

/* Waits until what this thread has logged was written; false: not within TIMEOUT_MS. */
bool log_flush(struct log *log, unsigned timeout_ms);

/* Gives the calling thread a ring of its own; threads without share one behind a mutex. Without
 * memory it goes on sharing. */
void log_attach(struct log *log);
/* Before the thread ends. What it has logged will still be written. */
void log_detach(void);

/* --- lines ------------------------------------------------------------------------------------- */

bool log_wants(enum log_level level); /* 1 ns */

/* Use the macros below. FIELDS begins with a blank, so that none at all is no empty format. */
void log_write(enum log_level level, const char *message, const char *fields, ...)
    PRINTF_LIKE(3, 4);

#define LOG_AT(level, message, ...)                                                                \
    do {                                                                                           \
        if (log_wants(level))                                                                      \
            log_write(level, message, " " __VA_ARGS__);                                            \
    } while (0)

#define log_trace(...) LOG_AT(LOG_TRACE, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_fatal(...) LOG_AT(LOG_FATAL, __VA_ARGS__)

/* A line whose fields are known only at run time, Lua's: log_line_begin(), its fields, then this.
 * Frees the payload. */
void log_line_end(struct log_line *line);

/* --- records of another kind: the access log ----------------------------------------------------- */

/* Room for LEN bytes of payload (at most LOG_PAYLOAD_MAX), aligned to 8, for the caller to fill
 * before log_commit(), with no other call of this file in between. NULL: there is no log, or the
 * record was dropped; log_commit() must not follow. WALL_MS: the time that the line will bear. */
void *log_reserve(const struct log_kind *kind, enum log_level level, int64_t wall_ms, size_t len);
void  log_commit(void);

/* --- names -------------------------------------------------------------------------------------- */

/* "info"; false: no such level. "off" is one, for configurations. */
bool        log_level_of_name(struct str name, enum log_level *level);
const char *log_level_name(enum log_level level);
/* "auto", "json", "pretty". */
bool log_format_of_name(struct str name, enum log_format *format);

#endif
