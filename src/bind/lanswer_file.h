/* bind/lanswer_file.h - a file that is recorded as the answer; in the exchange's arena. */
#ifndef BIND_LANSWER_FILE_H
#define BIND_LANSWER_FILE_H

#include "http/file_answer.h"
#include "http/files.h"

struct lcall;

struct lfile {
    struct files_file  file; /* fd -1 once it was handed over */
    struct file_answer plan; /* decided when it is sent: until then status and fields may change */
};

/* Status and bytes of the file that is recorded, by what is on the answer now: nothing changes it after.
 * Once decided, it stays so. */
void lanswer_file_decide(struct lcall *call);

#endif
