/* server/access_log.h - one line for each finished request, in the fields of pino-http.
 *
 *     {"level":30,"time":1700000000000,"pid":7,"reqId":"...","req":{"id":"...","method":"GET",
 *      "url":"/news?page=2","remoteAddress":"127.0.0.1","remotePort":40112},
 *      "res":{"statusCode":200,"contentLength":312},"responseTime":1.204,"msg":"request completed"}
 *
 * The worker copies a compact record (75 ns); the log's thread makes the text. */
#ifndef SERVER_ACCESS_LOG_H
#define SERVER_ACCESS_LOG_H

#include "base/str.h"

struct exchange;

enum {
    ACCESS_LOG_URL_MAX = 4096, /* longer ones are cut, with an ellipsis */
    ACCESS_LOG_ID_MAX  = 200,  /* a client behind a trusted proxy may have chosen it */
};

/* From on_sent(), or from on_gone() of an exchange that was never answered: that is status 499, as
 * nginx has it. Everything is copied. REQUEST_ID may be empty. Nothing happens unless the log wants
 * lines of level info. */
void access_log_write(const struct exchange *ex, struct str request_id);

#endif
