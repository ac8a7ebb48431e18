#include "load/load_account.h"

#include <string.h>

#include "base/clock.h"
#include "load/load_state.h"

void load_account_end_if_done(struct load_thread *thread)
{
    if (load_thread_is_done(thread))
        load_thread_end(thread);
}

/* --- sending ---------------------------------------------------------------------------------------- */

static unsigned next_request(struct load_conn *conn)
{
    const struct load_plan *plan = load_plan_of(conn);
    unsigned                request;

    do
        request = plan->wheel[conn->step++ % plan->wheel_len];
    while (plan->requests[request].origin != conn->origin);
    return request;
}

bool load_account_may_issue(const struct load_conn *conn)
{
    const struct load_plan   *plan   = load_plan_of(conn);
    const struct load_thread *thread = conn->thread;

    return conn->state == LOAD_CONN_UP && thread->quota > 0 && !thread->is_over &&
           (!plan->reconnect || conn->issued < plan->reconnect) &&
           (!plan->per_connection || conn->issued_ever < plan->per_connection) &&
           conn->protocol->room(conn) > 0;
}

bool load_account_is_due(struct load_conn *conn, uint64_t now_ns, uint64_t *planned_ns)
{
    struct load_pace *pace = &conn->thread->pace;

    *planned_ns = now_ns;
    return !pace->interval_ns || load_pace_take(pace, now_ns, planned_ns);
}

static void note_sent(struct load_conn *conn, uint64_t planned_ns, uint64_t now_ns)
{
    struct load_thread *thread = conn->thread;

    if (thread->quota != UINT64_MAX)
        thread->quota--;
    load_count(&thread->counts.sent, 1);
    if (now_ns > planned_ns + LOAD_LATE_US * (uint64_t)NS_PER_US)
        load_count(&thread->counts.late, 1);
}

const struct load_request *load_account_issue(struct load_conn *conn, struct load_slot *slot,
                                              uint64_t planned_ns, uint64_t now_ns)
{
    *slot = (struct load_slot){ planned_ns, now_ns, next_request(conn) };
    conn->under_way++;
    conn->thread->under_way++;
    conn->issued++;
    conn->issued_ever++;
    note_sent(conn, planned_ns, now_ns);
    return &load_plan_of(conn)->requests[slot->request];
}

bool load_account_is_used_up(const struct load_conn *conn)
{
    const struct load_plan *plan = load_plan_of(conn);

    return conn->under_way == 0 &&
           ((plan->reconnect && conn->issued >= plan->reconnect) ||
            (plan->per_connection && conn->issued_ever >= plan->per_connection));
}

/* --- faults ------------------------------------------------------------------------------------------- */

static void count_fault(struct load_conn *conn, enum load_fault fault)
{
    struct load_shared *shared = conn->thread->shared;
    uint64_t            before = atomic_fetch_add(&shared->faults, 1);

    load_count(&conn->thread->counts.faults[fault], 1);
    if (shared->plan->bailout && before + 1 >= shared->plan->bailout) {
        atomic_store(&shared->stopped, true);
        load_thread_end(conn->thread);
    }
}

void load_account_unsent(struct load_conn *conn, enum load_fault fault, uint64_t planned_ns,
                         uint64_t now_ns)
{
    note_sent(conn, planned_ns, now_ns);
    count_fault(conn, fault);
}

void load_account_fault(struct load_conn *conn, enum load_fault fault)
{
    count_fault(conn, fault);
    conn->under_way--;
    conn->thread->under_way--;
    load_account_end_if_done(conn->thread);
}

void load_account_fault_all(struct load_conn *conn, enum load_fault first, enum load_fault rest)
{
    for (unsigned i = 0; i < conn->under_way; i++)
        count_fault(conn, i == 0 ? first : rest);
    conn->thread->under_way -= conn->under_way;
    conn->under_way = 0;
    load_account_end_if_done(conn->thread);
}

/* --- answers ------------------------------------------------------------------------------------------ */

void load_body_compare(struct load_body *body, const struct load_request *request, struct str piece)
{
    size_t left = request->expect.len - body->at;

    if (!request->checks_body || body->differs)
        return;
    if (piece.len > left || memcmp(request->expect.at + body->at, piece.at, piece.len) != 0)
        body->differs = true;
    else
        body->at += piece.len;
}

static bool differs(const struct load_body *body, const struct load_request *request)
{
    return request->checks_body && (body->differs || body->at < request->expect.len);
}

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns + NS_PER_US / 2) / NS_PER_US : 0;
}

void load_account_answer(struct load_conn *conn, const struct load_slot *slot, unsigned status,
                         const struct load_body *body, uint64_t now_ns)
{
    struct load_counts *counts = &conn->thread->counts;

    status = status < LOAD_STATUSES ? status : LOAD_STATUSES - 1;
    load_count(&counts->statuses[status], 1);
    if (differs(body, &load_plan_of(conn)->requests[slot->request]))
        load_count(&counts->mismatched, 1);
    if (!load_plan_of(conn)->only_ok || status / 100 == 2) {
        hist_add(&counts->latency, us_between(slot->planned_ns, now_ns));
        hist_add(&counts->service, us_between(slot->sent_ns, now_ns));
    }
    conn->under_way--;
    conn->thread->under_way--;
    load_account_end_if_done(conn->thread);
}
