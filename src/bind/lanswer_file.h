/* bind/lanswer_file.h - a file that is recorded as the answer; in the exchange's arena. */
#ifndef BIND_LANSWER_FILE_H
#define BIND_LANSWER_FILE_H

#include "http/file_answer.h"
#include "http/files.h"

struct lfile {
    struct files_file  file; /* fd -1 once it was handed over */
    struct file_answer plan;
};

#endif
