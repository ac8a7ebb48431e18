/* http/file_answer.h - what is answered with a file that was found: validators, conditions, ranges.
 *
 * A plan is made in two steps, and neither touches the file: first what describes it, to which the
 * caller may add fields or put others in their place; then, by the validators that will be sent, which
 * status and which bytes. Then it is sent. */
#ifndef HTTP_FILE_ANSWER_H
#define HTTP_FILE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "http/files.h"
#include "http/message.h"
#include "http/range.h"

struct arena;
struct condition_validators;
struct exchange;

enum {
    FILE_ANSWER_FIELDS_MAX      = 8,
    FILE_ANSWER_MULTI_BYTES_MAX = 256 * 1024, /* of several ranges together, for they are copied;
                                               * more, and the whole file is sent */
};

struct file_answer_rules {
    uint64_t   max_age_s;  /* Cache-Control: public, max-age=... */
    bool       is_private; /* ... or private: for who asked, and no cache that others share */
    bool       immutable;
    bool       etag;         /* strong, but weak while the file is younger than its clock is fine */
    bool       varies;       /* another coding could have been chosen: Vary */
    struct str content_type; /* empty: by the name */
};

struct file_answer {
    unsigned     status; /* 200, 206, 304, 412, 416; 0: not decided */
    struct str   content_type;
    struct field fields[FILE_ANSWER_FIELDS_MAX];
    unsigned     field_count;
    uint64_t     length; /* of the body; 0 but for 200 and 206 */
    uint64_t     offset; /* where it begins in the file, unless there are parts */
    struct range parts[RANGE_COUNT_MAX];
    unsigned     part_count; /* 0, or at least 2: multipart/byteranges */
    struct str   part_type;  /* of each part */
    struct str   boundary;
};

/* Type and fields of all of FILE. Text goes to ARENA. RULES: strings are borrowed. */
void file_answer_describe(struct arena *arena, const struct files_file *file,
                          const struct file_answer_rules *rules, struct file_answer *out);

/* Decides by the conditions and ranges of a GET or HEAD; for other methods it is the whole file. May
 * change the type, and adds to PLAN's fields what goes with the status, but takes none away: see
 * file_answer_drops(). */
void file_answer_decide(struct arena *arena, const struct request *request,
                        const struct files_file           *file,
                        const struct condition_validators *validators, struct file_answer *plan);

/* Whether the field NAME does not go with STATUS. */
bool file_answer_drops(unsigned status, struct str name);

/* Both steps. */
void file_answer_plan(struct arena *arena, const struct request *request,
                      const struct files_file *file, const struct file_answer_rules *rules,
                      struct file_answer *out);

/* Answers EX with HEAD, which is the plan's status, type and fields and whatever the caller added,
 * and the bytes that the plan names. Owns file->fd. A plan without a body is answered without
 * one. 0, EXCHANGE_GONE or EXCHANGE_INVALID. Reading parts may block for a moment. */
int file_answer_send(struct exchange *ex, const struct answer *head, const struct file_answer *plan,
                     const struct files_file *file);

/* All in one, for a server of plain files: finds PATH (decoded, relative) and answers EX with it, or
 * with 400, 404, 405, 503 or a redirect to the path with its slash. Lets EX go. */
void file_answer_serve(struct exchange *ex, const struct files_folder *folder, struct str path,
                       const struct files_rules *rules, const struct file_answer_rules *answers);

#endif
