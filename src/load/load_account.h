/* load/load_account.h - when a connection of a load may send its next request, and what is counted of each:
 * the part that all protocols have in common. */
#ifndef LOAD_LOAD_ACCOUNT_H
#define LOAD_LOAD_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "load/load_count.h"

struct load_body;
struct load_conn;
struct load_request;
struct load_slot;
struct load_thread;

/* --- sending ---------------------------------------------------------------------------------------- */

bool load_account_may_issue(const struct load_conn *conn);
/* In an open loop only what is due is sent. */
bool load_account_is_due(struct load_conn *conn, uint64_t now_ns, uint64_t *planned_ns);
/* The connection's next request goes out; SLOT says which. */
const struct load_request *load_account_issue(struct load_conn *conn, struct load_slot *slot,
                                              uint64_t planned_ns, uint64_t now_ns);
/* One that had nowhere to go. */
void load_account_unsent(struct load_conn *conn, enum load_fault fault, uint64_t planned_ns,
                         uint64_t now_ns);
/* The connection has had its share: it is made anew, or used no more. */
bool load_account_is_used_up(const struct load_conn *conn);

/* --- what became of it ------------------------------------------------------------------------------- */

void load_body_compare(struct load_body *body, const struct load_request *request,
                       struct str piece);

void load_account_answer(struct load_conn *conn, const struct load_slot *slot, unsigned status,
                         const struct load_body *body, uint64_t now_ns);
void load_account_fault(struct load_conn *conn, enum load_fault fault);
/* All that is under way: FIRST for one of them, REST for the others. */
void load_account_fault_all(struct load_conn *conn, enum load_fault first, enum load_fault rest);

/* The load as a whole ends if nothing is left to do. */
void load_account_end_if_done(struct load_thread *thread);

#endif
