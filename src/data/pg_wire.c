/* A statement is one op: perhaps Parse, perhaps Describe, Execute, and a Sync, at whose answer the op
 * is over. A JSON array among its parameters needs their types first: then the op describes only,
 * and another one executes.
 *
 * libpq holds what it has read; how much there still is to read is asked of the socket, since edges
 * come once. */
#include "data/pg_wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "data/pg_call.h"
#include "data/pg_fault.h"
#include "data/pg_lib.h"
#include "data/pg_op.h"
#include "data/rows.h"

enum {
    READ_BYTES_LEAST = 8192, /* what libpq has room for when it reads */
};

/* --- breaking -------------------------------------------------------------------------------- */

static void tell_all(struct pg_wire *wire)
{
    struct pg_op *op;

    while ((op = pg_op_head(wire))) {
        struct pg_call *call = op->call;

        pg_op_take_off(wire, op);
        pg_op_orphan(wire, op);
        if (call) {
            call->fault = wire->fault;
            pg_call_end(call);
        }
        pg_op_free(wire, op);
    }
}

static void find_fault(struct pg_wire *wire)
{
    if (fault_is_set(&wire->fault))
        return;
    if (wire->state == PG_WIRE_READY && fault_is_set(&wire->connect.fault))
        wire->fault = wire->connect.fault;
    else
        pg_fault_from_conn(&wire->fault, wire->lib, wire->pq, "the connection to PostgreSQL broke");
}

static void note_broken(struct pg_wire *wire)
{
    wire->state = PG_WIRE_BROKEN;
    io_stop(&wire->io);
    later_cancel(&wire->flush);
    later_cancel(&wire->resume);
}

/* From the turn. The wire may be gone after it. */
static void break_now(struct pg_wire *wire)
{
    find_fault(wire);
    note_broken(wire);
    later_cancel(&wire->breaking);
    tell_all(wire);
    wire->hooks->on_broken(wire);
}

static void on_breaking(struct later *later)
{
    break_now(container_of(later, struct pg_wire, breaking));
}

static void break_soon(struct pg_wire *wire)
{
    if (wire->state == PG_WIRE_BROKEN)
        return;
    find_fault(wire);
    note_broken(wire);
    loop_later(wire->loop, &wire->breaking);
}

void pg_wire_break(struct pg_wire *wire, const struct fault *fault)
{
    if (wire->state == PG_WIRE_BROKEN)
        return;
    if (fault)
        wire->fault = *fault;
    break_soon(wire);
}

/* --- results --------------------------------------------------------------------------------- */

static void note_types(struct pg_wire *wire, struct pg_stmt *stmt, const PGresult *result)
{
    unsigned  count = (unsigned)wire->lib->nparams(result);
    unsigned *types = calloc(count + 1, sizeof(*types));

    if (!types)
        return;
    for (unsigned i = 0; i < count; i++)
        types[i] = wire->lib->paramtype(result, (int)i);
    free(stmt->types);
    stmt->types      = types;
    stmt->type_count = count;
    stmt->described  = true;
}

static unsigned first_step(const struct pg_op *op)
{
    return op->steps & (~op->steps + 1);
}

/* What has come is counted while it comes, roughly; here it is known. */
static bool is_too_large(const struct pg_wire *wire, const PGresult *result)
{
    return wire->lib->ntuples(result) > ROWS_MAX ||
           wire->lib->resultMemorySize(result) > ROWS_BYTES_MAX;
}

static void keep_result(struct pg_wire *wire, struct pg_op *op, PGresult *result)
{
    unsigned step = first_step(op);

    op->steps &= ~step;
    if (step == STEP_DESCRIBE && op->stmt)
        note_types(wire, op->stmt, result);
    if (step != STEP_EXECUTE || !op->call || is_too_large(wire, result)) {
        op->too_large |= step == STEP_EXECUTE && op->call;
        wire->lib->clear(result);
        return;
    }
    if (op->result)
        wire->lib->clear(op->result);
    op->result = result;
}

/* Another has changed the tables, or has deallocated all statements of the session. */
static bool tells_stale(const struct pg_lib *lib, const PGresult *result)
{
    const char *state   = lib->resultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = lib->resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (!state || !message)
        return false;
    return strcmp(state, "26000") == 0 ||
           (strcmp(state, "0A000") == 0 && strstr(message, "cached plan"));
}

static void keep_fault(struct pg_wire *wire, struct pg_op *op, const PGresult *result)
{
    bool       is_script = op->call && op->call->verb == PG_SCRIPT;
    struct str sql       = op->call ? buf_str(&op->call->sql) : STR("");

    if (!fault_is_set(&op->fault))
        pg_fault_from_result(&op->fault, wire->lib, result, sql, is_script);
    pg_connect_note(&wire->connect, result);
    op->stale = tells_stale(wire->lib, result);
    if (op->stale && op->call && op->call->lease)
        op->fault.code = "conflict"; /* the transaction is lost, and can be tried again */
    if (op->stmt && (op->stale || first_step(op) == STEP_PREPARE))
        pg_stmts_forget(&wire->stmts, op->stmt);
}

static int  send_statement(struct pg_wire *wire, struct pg_call *call);
static bool sync_wire(struct pg_wire *wire);

/* --- types of the database's own ---------------------------------------------------------------- */

enum { OWN_ASKED_MAX = 64, TYPES_SQL_BYTES = 1024 };

static void note_own_types(struct pg_wire *wire, const PGresult *result)
{
    const struct pg_lib *lib = wire->lib;

    for (int i = 0; result && i < lib->ntuples(result); i++)
        pg_own_types_add(wire->own_types, (unsigned)strtoul(lib->getvalue(result, i, 0), NULL, 10),
                         lib->getvalue(result, i, 1)[0] == 't', lib->getvalue(result, i, 2)[0]);
}

/* Those of RESULT that are not known, as "16400,16405". */
static void list_unknown(struct pg_wire *wire, const PGresult *result, struct buf *list)
{
    struct pg_type type;
    unsigned       count = 0;

    for (int i = 0; i < wire->lib->nfields(result) && count < OWN_ASKED_MAX; i++) {
        unsigned oid = wire->lib->ftype(result, i);

        if (pg_own_types_find(wire->own_types, oid, &type))
            continue;
        buf_printf(list, "%s%u", count++ ? "," : "", oid);
    }
}

/* Its result cannot be read yet: an enum's array looks like a text. True: CALL goes on as an op that
 * asks. */
static bool asks_for_types(struct pg_wire *wire, struct pg_op *op, struct pg_call *call)
{
    char          sql[TYPES_SQL_BYTES + 128];
    struct buf    list;
    struct pg_op *asking;
    bool          sent;

    if (!op->result || wire->state != PG_WIRE_READY || wire->simple)
        return false;
    buf_init(&list, TYPES_SQL_BYTES);
    list_unknown(wire, op->result, &list);
    asking = list.len && !list.failed ? pg_op_new(wire, call) : NULL;
    if (asking)
        snprintf(sql, sizeof(sql),
                 "select oid::int8, typcategory = 'A', typdelim from pg_catalog.pg_type "
                 "where oid in (%.*s)",
                 STR_ARG(buf_str(&list)));
    buf_fini(&list);
    sent = asking && wire->lib->sendQueryParams(wire->pq, sql, 0, NULL, NULL, NULL, NULL, 0) &&
           sync_wire(wire);
    if (!sent) {
        free(asking);
        return false;
    }
    asking->steps = STEP_EXECUTE;
    asking->held  = op->result;
    op->result    = NULL;
    pg_op_append(wire, asking);
    return true;
}

/* An op that has answered goes on as another one: it described, or its plan was stale. */
static bool goes_on(struct pg_wire *wire, struct pg_op *op, struct pg_call *call)
{
    bool again = op->stale && !call->retried && !call->lease;

    if (!op->held && asks_for_types(wire, op, call))
        return true;
    if (again)
        call->retried = true;
    else if (!op->describes || fault_is_set(&op->fault))
        return false;
    return wire->state == PG_WIRE_READY && send_statement(wire, call) == 0;
}

static void give_outcome(struct pg_wire *wire, struct pg_op *op, struct pg_call *call)
{
    if (op->held) {
        note_own_types(wire, op->result);
        fault_clear(&op->fault);
        wire->lib->clear(op->result);
        op->result = op->held;
        op->held   = NULL;
    }
    if (fault_is_set(&op->fault))
        call->fault = op->fault;
    else if (op->too_large)
        fault_set(&call->fault, "too_large",
                  "the result has more than %d rows or %d MiB: db:rows reads it "
                  "piece by piece",
                  ROWS_MAX, ROWS_BYTES_MAX / (1024 * 1024));
    else if (op->result) {
        pg_rows_set(&call->rows, wire->lib, wire->own_types, op->result);
        op->result = NULL;
    }
    pg_call_end(call);
}

static void finish_op(struct pg_wire *wire)
{
    struct pg_op   *op    = pg_op_head(wire);
    struct pg_call *call  = op->call;
    uint64_t        now   = loop_now_ns(wire->loop);
    uint64_t        since = op->sent_ns > wire->head_since_ns ? op->sent_ns : wire->head_since_ns;

    if (op->stmt)
        pg_stmt_took(op->stmt, (now - since) / NS_PER_US);
    pg_op_take_off(wire, op);
    pg_op_orphan(wire, op);
    wire->head_since_ns = now;
    wire->head_bytes    = 0;
    if (call && !goes_on(wire, op, call))
        give_outcome(wire, op, call);
    pg_op_free(wire, op);
}

/* False: the wire says something that it should not. */
static bool take_result(struct pg_wire *wire, PGresult *result)
{
    struct pg_op *op = pg_op_head(wire);

    if (!op) {
        wire->lib->clear(result);
        return false;
    }
    switch (wire->lib->resultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        wire->lib->clear(result);
        finish_op(wire);
        return true;
    case PGRES_EMPTY_QUERY:
        if (!op->simple) /* a script may be empty */
            fault_set(&op->fault, "sql", "an empty statement");
        keep_result(wire, op, result);
        return true;
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK: keep_result(wire, op, result); return true;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
        wire->copying     = true;
        wire->copying_out = wire->lib->resultStatus(result) == PGRES_COPY_OUT;
        op->result        = result;
        finish_op(wire);
        return true;
    case PGRES_PIPELINE_ABORTED: break;
    default: keep_fault(wire, op, result);
    }
    wire->lib->clear(result);
    return true;
}

/* The simple protocol's end. */
static bool finish_simple(struct pg_wire *wire)
{
    struct pg_op *op = pg_op_head(wire);

    if (!op || !op->simple)
        return true;
    if (op->call && op->call->verb == PG_SCRIPT && !fault_is_set(&op->fault) &&
        wire->lib->transactionStatus(wire->pq) != PQTRANS_INTRANS)
        fault_set(&op->fault, "sql", "the script ended the transaction that it runs in");
    wire->simple = false;
    if (!wire->lib->enterPipelineMode(wire->pq))
        return false;
    finish_op(wire);
    return true;
}

/* Takes what libpq has read. False: broken. *ENDED: ops are over. */
static bool take_results(struct pg_wire *wire, bool *ended)
{
    const struct pg_lib *lib    = wire->lib;
    unsigned             before = wire->depth;
    unsigned             nulls  = 0;

    while (nulls < 2 && !wire->copying && !lib->isBusy(wire->pq)) {
        PGresult *result = lib->getResult(wire->pq);

        nulls = result ? 0 : nulls + 1;
        if (result ? !take_result(wire, result) : wire->simple && !finish_simple(wire))
            return false;
        *ended |= wire->depth != before;
    }
    return wire->state != PG_WIRE_BROKEN;
}

static void take_notes(struct pg_wire *wire)
{
    PGnotify *note;

    while ((note = wire->lib->notifies(wire->pq))) {
        wire->hooks->on_note(wire, str_of(note->relname), str_of(note->extra));
        wire->lib->freemem(note);
    }
}

/* --- the socket ------------------------------------------------------------------------------- */

size_t pg_wire_unread(const struct pg_wire *wire)
{
    int bytes = 0;

    return ioctl(wire->lib->socket(wire->pq), FIONREAD, &bytes) == 0 ? (size_t)bytes : 0;
}

static bool is_within_bound(struct pg_wire *wire)
{
    if (wire->head_bytes <= ROWS_BYTES_MAX)
        return true;
    fault_set(&wire->fault, "too_large",
              "a result was larger than %d MiB: db:rows reads it piece by piece",
              ROWS_BYTES_MAX / (1024 * 1024));
    return false;
}

/* libpq does not tell how much it has read. Where more came meanwhile than it took, it was at least as
 * much as it has room for: rather too little, since what is here is weighed exactly. Never 0, so that
 * the next edge looks at what it brings. */
static void count_read(struct pg_wire *wire, size_t before, size_t left)
{
    wire->head_bytes += before > left ? before - left : left > 0 ? READ_BYTES_LEAST : 1;
}

static bool read_all(struct pg_wire *wire, bool *ended)
{
    unsigned rounds = wire->lib->sslInUse(wire->pq) ? PG_TLS_ROUNDS : 0;
    size_t   left   = wire->head_bytes > 0 ? pg_wire_unread(wire) : 0;

    for (;;) {
        size_t before = left;

        if (!wire->lib->consumeInput(wire->pq) || !take_results(wire, ended))
            return false;
        take_notes(wire);
        left = pg_wire_unread(wire);
        count_read(wire, before, left);
        if (!is_within_bound(wire))
            return false;
        if (left == 0 && rounds-- == 0)
            return wire->lib->status(wire->pq) == CONNECTION_OK;
    }
}

bool pg_wire_flush(struct pg_wire *wire)
{
    int left = wire->lib->flush(wire->pq);

    wire->unsent = left > 0;
    return left >= 0;
}

static void on_flush(struct later *later)
{
    struct pg_wire *wire = container_of(later, struct pg_wire, flush);

    if (!pg_wire_flush(wire))
        break_now(wire);
}

/* What a COPY sends us waits in the socket until it is asked for. */
static void on_io(int fd, short what, void *arg)
{
    struct pg_wire *wire   = arg;
    bool            flowed = wire->copying;
    bool            ended  = false;

    if (wire->unsent && !pg_wire_flush(wire)) {
        break_now(wire);
        return;
    }
    if (!(wire->copying && wire->copying_out) && !read_all(wire, &ended)) {
        break_now(wire);
        return;
    }
    if (flowed)
        wire->hooks->on_flow(wire);
    else if (ended)
        wire->hooks->on_room(wire);
}

static void on_resume(struct later *later)
{
    on_io(-1, IO_READ, container_of(later, struct pg_wire, resume));
}

/* --- life -------------------------------------------------------------------------------------- */

static void on_connected(struct pg_connect *connect)
{
    struct pg_wire *wire = container_of(connect, struct pg_wire, connect);

    wire->pq    = connect->pq;
    connect->pq = NULL;
    if (!wire->pq) {
        wire->fault = connect->fault;
        break_now(wire);
        return;
    }
    if (!wire->lib->enterPipelineMode(wire->pq) ||
        io_start_edge(&wire->io, wire->loop, wire->lib->socket(wire->pq), on_io, wire) != 0) {
        break_now(wire);
        return;
    }
    wire->state = PG_WIRE_READY;
    wire->hooks->on_ready(wire);
}

void pg_wire_open(struct pg_wire *wire, const struct pg_lib *lib, const struct pg_url *url,
                  struct dns *dns, struct loop *loop, uint64_t statement_ms)
{
    wire->lib   = lib;
    wire->loop  = loop;
    wire->state = PG_WIRE_CONNECTING;
    list_init(&wire->ops);
    later_init(&wire->flush, on_flush);
    later_init(&wire->resume, on_resume);
    later_init(&wire->breaking, on_breaking);
    pg_stmts_init(&wire->stmts, wire->costs);
    pg_params_init(&wire->params);
    wire->connect.done = on_connected;
    pg_connect_start(&wire->connect, lib, url, dns, loop, statement_ms);
}

void pg_wire_close(struct pg_wire *wire)
{
    struct pg_op *op;

    assert(wire->live == 0);
    pg_connect_cancel(&wire->connect);
    note_broken(wire);
    later_cancel(&wire->breaking);
    while ((op = pg_op_head(wire))) {
        pg_op_take_off(wire, op);
        pg_op_free(wire, op);
    }
    pg_stmts_fini(&wire->stmts);
    pg_params_fini(&wire->params);
    if (wire->pq)
        wire->lib->finish(wire->pq);
    wire->pq = NULL;
}

bool pg_wire_is_clean(const struct pg_wire *wire)
{
    return wire->state == PG_WIRE_READY && wire->depth == 0 && !wire->simple && !wire->copying &&
           wire->lib->transactionStatus(wire->pq) == PQTRANS_IDLE;
}

/* --- sending ------------------------------------------------------------------------------------ */

/* libpq before 17 writes at each Sync; from 17 on all of a turn's statements are one write. */
static bool sync_wire(struct pg_wire *wire)
{
    if (!wire->lib->sendPipelineSync) {
        bool fine = wire->lib->pipelineSync(wire->pq);

        wire->unsent = true; /* perhaps: the next event looks */
        return fine;
    }
    loop_later(wire->loop, &wire->flush);
    return wire->lib->sendPipelineSync(wire->pq);
}

void pg_wire_post(struct pg_wire *wire, const char *sql)
{
    struct pg_op *op = pg_op_new(wire, NULL);

    if (!op || !wire->lib->sendQueryParams(wire->pq, sql, 0, NULL, NULL, NULL, NULL, 0) ||
        !sync_wire(wire)) {
        free(op);
        break_soon(wire);
        return;
    }
    op->steps = STEP_EXECUTE;
    pg_op_append(wire, op);
}

static struct pg_stmt *use_stmt(struct pg_wire *wire, struct pg_call *call)
{
    char            gone[PG_STMT_NAME_BYTES];
    char            text[PG_STMT_NAME_BYTES + sizeof("deallocate ")];
    struct pg_stmt *stmt = pg_stmts_use(&wire->stmts, buf_str(&call->sql), gone);

    if (gone[0]) {
        snprintf(text, sizeof(text), "deallocate %s", gone);
        pg_wire_post(wire, text);
    }
    return stmt;
}

static bool send_prepare(struct pg_wire *wire, struct pg_op *op)
{
    if (op->stmt->prepared)
        return true;
    op->stmt->prepared = true;
    op->steps |= STEP_PREPARE;
    return wire->lib->sendPrepare(wire->pq, op->stmt->name, op->stmt->sql, 0, NULL);
}

static bool send_rest(struct pg_wire *wire, struct pg_op *op)
{
    const struct pg_params *params = &wire->params;

    if (op->describes) {
        op->steps |= STEP_DESCRIBE;
        return wire->lib->sendDescribePrepared(wire->pq, op->stmt->name);
    }
    op->steps |= STEP_EXECUTE;
    return wire->lib->sendQueryPrepared(wire->pq, op->stmt->name, (int)params->count,
                                        params->values, params->lengths, params->formats, 0);
}

/* Nothing is sent before all of it can be. */
static int send_statement(struct pg_wire *wire, struct pg_call *call)
{
    struct pg_op   *op   = pg_op_new(wire, call);
    struct pg_stmt *stmt = op ? use_stmt(wire, call) : NULL;

    if (!stmt) {
        free(op);
        return fault_set(&call->fault, "unavailable", "no memory for the statement");
    }
    op->stmt      = stmt;
    op->describes = !stmt->described && pg_params_need_types(&call->params);
    if (pg_params_fill(&wire->params, &call->params, stmt->types, stmt->type_count, &call->fault) !=
        0) {
        if (!stmt->prepared)
            pg_stmts_forget(&wire->stmts, stmt);
        pg_op_free(wire, op);
        return -1;
    }
    if (!send_prepare(wire, op) || !send_rest(wire, op) || !sync_wire(wire)) {
        break_soon(wire);
        call->fault = wire->fault;
        pg_op_free(wire, op);
        return -1;
    }
    pg_op_append(wire, op);
    return 0;
}

static int send_simple(struct pg_wire *wire, struct pg_call *call)
{
    struct pg_op *op;

    if (wire->depth > 0 || wire->simple || wire->copying)
        return fault_set(&call->fault, "busy", "another statement of this transaction still runs");
    op = pg_op_new(wire, call);
    buf_add_byte(&call->sql, '\0');
    if (!op || call->sql.failed || !wire->lib->exitPipelineMode(wire->pq) ||
        !wire->lib->sendQuery(wire->pq, call->sql.at) || !pg_wire_flush(wire)) {
        free(op);
        break_soon(wire);
        call->fault = wire->fault;
        return -1;
    }
    op->simple   = true;
    op->steps    = STEP_EXECUTE;
    wire->simple = true;
    pg_op_append(wire, op);
    return 0;
}

int pg_wire_send(struct pg_wire *wire, struct pg_call *call)
{
    assert(wire->depth <= PG_WIRE_DEPTH_MAX);
    if (wire->state != PG_WIRE_READY) {
        call->fault = wire->fault;
        return -1;
    }
    if (call->verb == PG_SCRIPT || call->verb == PG_COPY)
        return send_simple(wire, call);
    if (wire->simple || wire->copying)
        return fault_set(&call->fault, "busy", "a COPY or a script runs in this transaction");
    return send_statement(wire, call);
}

void pg_wire_orphan(struct pg_wire *wire, struct pg_call *call)
{
    pg_op_orphan(wire, call->op);
}
