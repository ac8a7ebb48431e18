/* http/multipart_head.h - what stands in front of a part of a form: its fields, its name, and the name
 * of a file made safe. */
#ifndef HTTP_MULTIPART_HEAD_H
#define HTTP_MULTIPART_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

enum {
    MULTIPART_HEAD_BYTES_MAX = 16 * 1024,
    MULTIPART_FIELDS_MAX     = 32,
    MULTIPART_FILE_NAME_MAX  = 255, /* bytes: what file systems take */
};

struct multipart_field {
    struct str name; /* in lower case */
    struct str value;
};

struct multipart_part {
    struct str name;      /* UTF-8 */
    struct str file_name; /* safe; `at` NULL: the part is no file */
    struct str type;      /* "image/png", in lower case; `at` NULL: not said */
    bool       unnamed;   /* a file whose name was sent as "": with no bytes, none was chosen */
    unsigned   count;
    struct multipart_field fields[MULTIPART_FIELDS_MAX];
};

/* Reads HEAD, lines that each end in CRLF, without the empty one; names become lower case in place.
 * What had to be decoded goes to TEXTS; PART borrows from both. 0, or the status of a fault and
 * *WHY. */
unsigned multipart_head_parse(struct multipart_part *part, struct buf *head, struct buf *texts,
                              const char **why);

struct multipart_param {
    struct str name;
    struct str value; /* of a quoted string what is between the quotes, escapes as they came */
};

/* Cuts the next parameter off *REST ("; a=b; c=\"d\""), blanks allowed around. 1; 0 at the end; -1: it
 * is malformed. */
int multipart_param_next(struct str *rest, struct multipart_param *out);

/* The last part of the path FILE_NAME, without control characters, marks that turn the direction of
 * writing, and blanks at its ends; at most MULTIPART_FILE_NAME_MAX bytes of which the ending stays.
 * Written to TO, which has room for it. Never empty, "." or "..". FILE_NAME is UTF-8. */
size_t multipart_safe_name(struct str file_name, char *to);

#endif
