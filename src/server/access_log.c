#include "server/access_log.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "http/exchange.h"
#include "net/addr.h"

enum {
    STATUS_CLIENT_GONE = 499,
    METHOD_MAX         = 32, /* http-parser knows none longer than 11 */
};

/* What crosses to the log's thread; method, URL and id follow it, without NULs. */
struct access_record {
    uint64_t    duration_ns;
    uint64_t    sent_bytes;
    struct addr peer; /* a Unix peer's path is not ours to look at any more */
    uint16_t    status;
    uint16_t    method_len;
    uint16_t    url_len;
    uint16_t    id_len;
    bool        url_cut;
    bool        aborted;
    uint8_t     version_major;
    uint8_t     version_minor;
};

/* --- on the log's thread ---------------------------------------------------------------------- */

struct access_texts {
    struct str method, url, id;
};

static struct access_texts texts_of(const struct access_record *record)
{
    const char *at = (const char *)(record + 1);

    return (struct access_texts){ .method = str_make(at, record->method_len),
                                  .url    = str_make(at + record->method_len, record->url_len),
                                  .id     = str_make(at + record->method_len + record->url_len,
                                                     record->id_len) };
}

/* pino-http's phrases. */
static const char *message_of(const struct access_record *record)
{
    if (record->aborted)
        return "request aborted";
    return record->status >= 500 ? "request errored" : "request completed";
}

/* 1.204 */
static void add_ms(struct buf *out, uint64_t ns)
{
    unsigned us = (unsigned)(ns % NS_PER_MS / NS_PER_US);

    buf_add_u64(out, ns / NS_PER_MS);
    buf_add_byte(out, '.');
    buf_add_byte(out, (char)('0' + us / 100));
    buf_add_byte(out, (char)('0' + us / 10 % 10));
    buf_add_byte(out, (char)('0' + us % 10));
}

static void add_url(struct buf *out, const struct access_record *record, struct str url)
{
    text_json(out, url);
    if (record->url_cut) { /* inside the quotes */
        out->len--;
        buf_add_str(out, STR("\xe2\x80\xa6\""));
    }
}

/* As req.protocol says it. */
static struct str protocol_of(const struct access_record *record)
{
    if (record->version_major == 2)
        return STR("HTTP/2");
    return record->version_minor > 0 ? STR("HTTP/1.1") : STR("HTTP/1.0");
}

static void add_peer(struct buf *out, const struct addr *peer)
{
    char host[ADDR_TEXT_BYTES];

    if (peer->family == AF_UNSPEC)
        return;
    buf_add_str(out, STR(",\"remoteAddress\":"));
    text_json(out, str_of(addr_format_host(peer, host)));
    if (peer->family != AF_UNIX) {
        buf_add_str(out, STR(",\"remotePort\":"));
        buf_add_u64(out, peer->port);
    }
}

static void add_request(struct buf *out, const struct access_record *record)
{
    struct access_texts texts = texts_of(record);

    if (texts.id.len) {
        buf_add_str(out, STR(",\"reqId\":"));
        text_json(out, texts.id);
    }
    buf_add_str(out, STR(",\"req\":{"));
    if (texts.id.len) {
        buf_add_str(out, STR("\"id\":"));
        text_json(out, texts.id);
        buf_add_byte(out, ',');
    }
    buf_add_str(out, STR("\"method\":"));
    text_json(out, texts.method);
    buf_add_str(out, STR(",\"url\":"));
    add_url(out, record, texts.url);
    buf_add_str(out, STR(",\"protocol\":\""));
    buf_add_str(out, protocol_of(record));
    buf_add_byte(out, '"');
    add_peer(out, &record->peer);
    buf_add_byte(out, '}');
}

static void write_json(struct buf *out, const void *payload, size_t len)
{
    const struct access_record *record = payload;

    add_request(out, record);
    buf_add_str(out, STR(",\"res\":{\"statusCode\":"));
    buf_add_u64(out, record->status);
    buf_add_str(out, STR(",\"contentLength\":"));
    buf_add_u64(out, record->sent_bytes);
    buf_add_str(out, STR("},\"responseTime\":"));
    add_ms(out, record->duration_ns);
    buf_add_str(out, STR(",\"msg\":\""));
    buf_add_str(out, str_of(message_of(record)));
    buf_add_byte(out, '"');
}

static const char *colour_of(unsigned status)
{
    if (status >= 500)
        return "\x1b[31m";
    if (status >= 400)
        return "\x1b[33m";
    return status >= 300 ? "\x1b[36m" : "\x1b[32m";
}

static void add_status(struct buf *out, unsigned status, bool colours)
{
    if (colours)
        buf_printf(out, " %s%u\x1b[0m ", colour_of(status), status);
    else
        buf_printf(out, " %u ", status);
}

/* GET /news?page=2 200 1.204 ms 312 B  reqId=... */
static void write_pretty(struct buf *out, const void *payload, size_t len, bool colours)
{
    const struct access_record *record = payload;
    struct access_texts         texts  = texts_of(record);

    text_terminal(out, texts.method, 0);
    buf_add_byte(out, ' ');
    text_terminal(out, texts.url, 0);
    buf_add_str(out, record->url_cut ? STR("\xe2\x80\xa6") : STR_NONE);
    add_status(out, record->status, colours);
    add_ms(out, record->duration_ns);
    buf_printf(out, " ms %llu B", (unsigned long long)record->sent_bytes);
    if (record->aborted)
        buf_add_str(out, STR(" aborted"));
    if (texts.id.len) {
        buf_add_str(out, colours ? STR("  \x1b[2mreqId=") : STR("  reqId="));
        text_terminal(out, texts.id, 0);
        buf_add_str(out, colours ? STR("\x1b[0m") : STR_NONE);
    }
}

static const struct log_kind ACCESS_KIND = { write_json, write_pretty };

/* --- on the worker's thread -------------------------------------------------------------------- */

static size_t at_most(size_t len, size_t max)
{
    return len < max ? len : max;
}

static void *append(char *to, const char *from, size_t len)
{
    if (len)
        memcpy(to, from, len);
    return to + len;
}

void access_log_write(const struct exchange *ex, struct str request_id)
{
    const struct request *request    = &ex->request;
    size_t                method_len = at_most(request->method.len, METHOD_MAX);
    size_t                url_len    = at_most(request->target.len, ACCESS_LOG_URL_MAX);
    size_t                id_len     = at_most(request_id.len, ACCESS_LOG_ID_MAX);
    struct access_record *record;
    char                 *at;

    if (!log_wants(LOG_INFO))
        return;
    record = log_reserve(&ACCESS_KIND, LOG_INFO, clock_wall_ms(),
                         sizeof(*record) + method_len + url_len + id_len);
    if (!record)
        return;
    *record = (struct access_record){
        .duration_ns   = clock_mono_ns() - ex->started_ns,
        .sent_bytes    = ex->sent_bytes,
        .status        = ex->answer_status ? ex->answer_status : STATUS_CLIENT_GONE,
        .method_len    = (uint16_t)method_len,
        .url_len       = (uint16_t)url_len,
        .id_len        = (uint16_t)id_len,
        .url_cut       = url_len < request->target.len,
        .aborted       = ex->answer_state != ANSWER_ENDED,
        .version_major = request->version_major,
        .version_minor = request->version_minor,
    };
    if (ex->peer)
        record->peer = *ex->peer;
    at = append((char *)(record + 1), request->method.at, method_len);
    at = append(at, request->target.at, url_len);
    append(at, request_id.at, id_len);
    log_commit();
}
