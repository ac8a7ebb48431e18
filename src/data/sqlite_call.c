#include "data/sqlite_call.h"

#include <limits.h>

void sqlite_call_init(struct sqlite_call *call, enum sqlite_verb verb)
{
    *call = (struct sqlite_call){ .verb = verb };
    buf_init(&call->sql, INT_MAX);
    values_init(&call->params, INT_MAX);
    rows_init(&call->rows);
    list_init(&call->link);
    list_init(&call->job.link);
    timer_init(&call->wait_limit, NULL);
}

void sqlite_call_fini(struct sqlite_call *call)
{
    buf_fini(&call->sql);
    values_fini(&call->params);
    rows_fini(&call->rows);
}
