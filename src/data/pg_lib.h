/* data/pg_lib.h - libpq's functions, loaded at first use: 37 libraries come with it, and who has no
 * PostgreSQL pays for none of them (CORE, decision 11).
 *
 * libpq calls its types struct pg_conn and struct pg_result: these names are not ours. */
#ifndef DATA_PG_LIB_H
#define DATA_PG_LIB_H

#include <libpq-fe.h>

struct err;

/* lib->flush() is PQflush(). */
#define PG_LIB_FUNCTIONS(X)                                                                        \
    X(clear)                                                                                       \
    X(cmdStatus)                                                                                   \
    X(cmdTuples)                                                                                   \
    X(conndefaults)                                                                                \
    X(connectPoll)                                                                                 \
    X(connectStartParams)                                                                          \
    X(conninfoFree)                                                                                \
    X(conninfoParse)                                                                               \
    X(consumeInput)                                                                                \
    X(enterPipelineMode)                                                                           \
    X(errorMessage)                                                                                \
    X(exitPipelineMode)                                                                            \
    X(finish)                                                                                      \
    X(flush)                                                                                       \
    X(fname)                                                                                       \
    X(freemem)                                                                                     \
    X(ftype)                                                                                       \
    X(getCopyData)                                                                                 \
    X(getResult)                                                                                   \
    X(getisnull)                                                                                   \
    X(getlength)                                                                                   \
    X(getvalue)                                                                                    \
    X(isBusy)                                                                                      \
    X(nfields)                                                                                     \
    X(notifies)                                                                                    \
    X(nparams)                                                                                     \
    X(ntuples)                                                                                     \
    X(paramtype)                                                                                   \
    X(pipelineSync)                                                                                \
    X(putCopyData)                                                                                 \
    X(putCopyEnd)                                                                                  \
    X(resultErrorField)                                                                            \
    X(resultErrorMessage)                                                                          \
    X(resultMemorySize)                                                                            \
    X(resultStatus)                                                                                \
    X(sendDescribePrepared)                                                                        \
    X(sendPrepare)                                                                                 \
    X(sendQuery)                                                                                   \
    X(sendQueryParams)                                                                             \
    X(sendQueryPrepared)                                                                           \
    X(setNoticeReceiver)                                                                           \
    X(setnonblocking)                                                                              \
    X(socket)                                                                                      \
    X(sslInUse)                                                                                    \
    X(status)                                                                                      \
    X(transactionStatus)

struct pg_lib {
    void *handle;
#define PG_LIB_MEMBER(name) __typeof__(&PQ##name) name;
    PG_LIB_FUNCTIONS(PG_LIB_MEMBER)
#undef PG_LIB_MEMBER
    /* From libpq 17 on: a Sync that is not flushed at once, so a turn's statements are one write.
     * Older ones: NULL. */
    int (*sendPipelineSync)(PGconn *conn);
};

/* ERR_NOT_FOUND: not installed, or older than pipelines (14). Blocks for 5 ms. It stays until the
 * process ends: OpenSSL beneath it cannot be unloaded. */
int pg_lib_load(struct pg_lib *out, struct err *err);

#endif
