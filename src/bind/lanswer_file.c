#include "bind/lanswer_file.h"

#include "base/err.h"
#include "bind/lcall.h"
#include "bind/lhead.h"
#include "http/condition.h"

static void drop_fields(struct lcall *call, unsigned status)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < call->field_count; i++)
        if (!file_answer_drops(status, call->fields[i].name))
            call->fields[kept++] = call->fields[i];
    call->field_count = kept;
}

static void take_plan(struct lcall *call, const struct file_answer *plan)
{
    struct err err;

    call->status = plan->status;
    call->type   = plan->content_type;
    drop_fields(call, plan->status);
    for (unsigned i = 0; i < plan->field_count; i++)
        lhead_set(call, plan->fields[i].name, plan->fields[i].value, &err);
}

void lanswer_file_decide(struct lcall *call)
{
    struct file_answer         *plan       = &call->file->plan;
    struct condition_validators validators = lhead_validators(call);

    if (plan->status)
        return;
    plan->content_type = lhead_type(call);
    if (call->status && call->status != 200) {
        plan->status = 200; /* all of the file, under the app's status: a page that says 404 */
        return;
    }
    file_answer_decide(&call->ex->arena, &call->ex->request, &call->file->file, &validators, plan);
    take_plan(call, plan);
}
