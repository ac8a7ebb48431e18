#include "data/pg_call.h"

#include "data/rows.h"

void pg_call_init(struct pg_call *call, enum pg_verb verb)
{
    *call = (struct pg_call){ .verb = verb };
    buf_init(&call->sql, PG_SQL_BYTES_MAX);
    values_init(&call->params, ROWS_BYTES_MAX);
    list_init(&call->link);
    limit_init(&call->limit);
}

void pg_call_fini(struct pg_call *call)
{
    buf_fini(&call->sql);
    values_fini(&call->params);
    pg_rows_clear(&call->rows);
}

void pg_call_end(struct pg_call *call)
{
    limit_stop(&call->limit);
    call->done(call);
}
