#include "load/load_h1.h"

#include "base/compiler.h"
#include "load/load_account.h"
#include "load/load_out.h"
#include "load/load_state.h"

static const struct load_request *first_request(struct load_conn *conn)
{
    return &load_plan_of(conn)->requests[load_slot_at(conn, 0)->request];
}

/* --- sending ---------------------------------------------------------------------------------------- */

static unsigned room(const struct load_conn *conn)
{
    return load_plan_of(conn)->pipelining - conn->under_way;
}

static bool issue(struct load_conn *conn, struct load_batch *batch, uint64_t planned_ns,
                  uint64_t now_ns)
{
    struct load_slot *slot = load_slot_at(conn, conn->under_way);

    return load_batch_add(batch, conn, load_account_issue(conn, slot, planned_ns, now_ns));
}

static enum load_fault fill(struct load_conn *conn, uint64_t now_ns, unsigned most)
{
    struct load_batch batch;
    uint64_t          planned_ns;
    bool              is_well = true;

    load_batch_init(&batch);
    while (is_well && most-- > 0 && load_account_may_issue(conn) &&
           load_account_is_due(conn, now_ns, &planned_ns))
        is_well = issue(conn, &batch, planned_ns, now_ns);
    is_well = is_well && load_batch_flush(&batch, conn);
    load_batch_fini(&batch);
    return is_well ? LOAD_WELL : LOAD_RESET;
}

static enum load_fault resume(struct load_conn *conn)
{
    return load_out_resume(conn) ? LOAD_WELL : LOAD_RESET;
}

/* --- responses -------------------------------------------------------------------------------------- */

static void compare_body(struct h1_skim *skim, struct str piece)
{
    struct load_conn *conn = container_of(skim, struct load_conn, h1.skim);

    load_body_compare(&conn->h1.body, first_request(conn), piece);
}

static void count_answer(struct load_conn *conn, uint64_t now_ns)
{
    struct load_slot slot = load_slot_take(conn);

    load_account_answer(conn, &slot, conn->h1.skim.status, &conn->h1.body, now_ns);
    conn->h1.body = (struct load_body){ 0 };
}

static enum load_fault take(struct load_conn *conn, const char *bytes, size_t len, uint64_t now_ns)
{
    while (len > 0) {
        size_t           used;
        enum h1_skimming outcome;

        if (conn->under_way == 0) {
            load_count(&conn->thread->counts.unasked, 1);
            return LOAD_MALFORMED;
        }
        h1_skim_expect(&conn->h1.skim, first_request(conn)->is_head);
        outcome = h1_skim_read(&conn->h1.skim, bytes, len, &used);
        if (outcome == H1_SKIM_WRONG)
            return LOAD_MALFORMED;
        if (outcome == H1_SKIM_DONE) {
            count_answer(conn, now_ns);
            if (!conn->h1.skim.keep_alive || load_account_is_used_up(conn))
                return LOAD_CLOSED;
        }
        bytes += used;
        len -= used;
    }
    return LOAD_WELL;
}

/* Which may be the end of a response. */
static void end(struct load_conn *conn, uint64_t now_ns)
{
    if (conn->under_way > 0 && h1_skim_close(&conn->h1.skim) == H1_SKIM_DONE)
        count_answer(conn, now_ns);
}

static enum load_fault check(struct load_conn *conn, uint64_t late_ns)
{
    return load_slot_is_late(conn, late_ns) ? LOAD_TIMEOUT : LOAD_WELL;
}

/* --- life -------------------------------------------------------------------------------------------- */

/* Else each piece of a body would be looked at for nothing. */
static bool checks_a_body(const struct load_plan *plan)
{
    for (unsigned i = 0; i < plan->request_count; i++)
        if (plan->requests[i].checks_body)
            return true;
    return false;
}

static enum load_fault begin(struct load_conn *conn)
{
    struct load_h1 *h1 = &conn->h1;

    h1_skim_init(&h1->skim);
    h1->skim.memo    = &conn->thread->memo;
    h1->skim.on_body = checks_a_body(load_plan_of(conn)) ? compare_body : NULL;
    h1->body         = (struct load_body){ 0 };
    return LOAD_WELL;
}

static bool is_ready(const struct load_conn *conn)
{
    return true;
}

static void leave(struct load_conn *conn)
{
}

const struct load_protocol LOAD_H1 = {
    .begin    = begin,
    .is_ready = is_ready,
    .leave    = leave,
    .room     = room,
    .fill     = fill,
    .take     = take,
    .end      = end,
    .resume   = resume,
    .check    = check,
};
