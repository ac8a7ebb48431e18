#include "http/h1_skim.h"

#include <string.h>

#include <http_parser.h>

#include "http/h1_parse.h"

_Static_assert(sizeof(struct http_parser) <= sizeof(((struct h1_skim *)0)->parser),
               "h1_skim has room for http-parser");

static struct h1_skim *skim_of(struct http_parser *parser)
{
    return parser->data;
}

static int on_begin(struct http_parser *parser)
{
    skim_of(parser)->begun = true;
    return 0;
}

/* RFC 9112, 6.3; the parser would wait for what the fields of a 304 announce. */
static bool has_no_body(const struct h1_skim *skim)
{
    return skim->answers_head || skim->status < 200 || skim->status == 204 || skim->status == 304;
}

/* What is returned tells the parser of the body: 1, that there is none. */
static int on_fields_end(struct http_parser *parser)
{
    struct h1_skim *skim = skim_of(parser);

    skim->status    = parser->status_code;
    parser->upgrade = 0;
    if (has_no_body(skim))
        skim->body_len = 0;
    else
        skim->body_len = parser->flags & F_CHUNKED ? UINT64_MAX : parser->content_length;
    return has_no_body(skim);
}

static int on_data(struct http_parser *parser, const char *at, size_t len)
{
    struct h1_skim *skim = skim_of(parser);

    if (skim->on_body)
        skim->on_body(skim, str_make(at, len));
    return 0;
}

/* Pausing is how the parser is told to leave the next response alone. */
static int on_complete(struct http_parser *parser)
{
    struct h1_skim *skim = skim_of(parser);

    if (skim->status < 200)
        return 0;
    skim->keep_alive = http_should_keep_alive(parser);
    http_parser_pause(parser, 1);
    return 0;
}

static const struct http_parser_settings callbacks = {
    .on_message_begin    = on_begin,
    .on_headers_complete = on_fields_end,
    .on_body             = on_data,
    .on_message_complete = on_complete,
};

void h1_skim_init(struct h1_skim *skim)
{
    h1_parse_init();
    http_parser_init((struct http_parser *)skim->parser, HTTP_RESPONSE);
    skim->status       = 0;
    skim->begun        = false;
    skim->answers_head = false;
}

void h1_skim_expect(struct h1_skim *skim, bool answers_head)
{
    skim->answers_head = answers_head;
}

static enum h1_skimming judge(struct h1_skim *skim, struct http_parser *parser)
{
    switch (HTTP_PARSER_ERRNO(parser)) {
    case HPE_OK: return H1_SKIM_MORE;
    case HPE_PAUSED:
        http_parser_pause(parser, 0);
        skim->begun = false;
        return H1_SKIM_DONE;
    default: return H1_SKIM_WRONG;
    }
}

/* --- what has been read before ---------------------------------------------------------------------- */

static bool is_known(const struct h1_skim *skim, const char *bytes, size_t len)
{
    const struct h1_skim_memo *memo = skim->memo;

    return memo && memo->head_len && !skim->begun && !skim->answers_head &&
           len >= memo->head_len + memo->body_len && memcmp(bytes, memo->head, memo->head_len) == 0;
}

static size_t take_known(struct h1_skim *skim, const char *bytes)
{
    const struct h1_skim_memo *memo = skim->memo;

    skim->status     = memo->status;
    skim->keep_alive = true;
    if (skim->on_body && memo->body_len)
        skim->on_body(skim, str_make(bytes + memo->head_len, memo->body_len));
    return memo->head_len + memo->body_len;
}

/* BYTES are a whole response. Interim ones before it belong to its head: they come again with it. */
static void remember(struct h1_skim *skim, const char *bytes, size_t len)
{
    struct h1_skim_memo *memo = skim->memo;
    size_t               head_len;

    if (skim->answers_head || !skim->keep_alive || skim->body_len > len)
        return;
    head_len = len - (size_t)skim->body_len;
    if (head_len < 4 || head_len > sizeof(memo->head) ||
        memcmp(bytes + head_len - 4, "\r\n\r\n", 4) != 0)
        return;
    memo->head_len = head_len;
    memo->body_len = (size_t)skim->body_len;
    memo->status   = skim->status;
    memcpy(memo->head, bytes, head_len);
}

/* --- reading ------------------------------------------------------------------------------------------ */

static enum h1_skimming parse(struct h1_skim *skim, const char *bytes, size_t len, size_t *used)
{
    struct http_parser *parser = (struct http_parser *)skim->parser;

    parser->data = skim;
    *used        = http_parser_execute(parser, &callbacks, bytes, len);
    parser->data = NULL;
    return judge(skim, parser);
}

enum h1_skimming h1_skim_read(struct h1_skim *skim, const char *bytes, size_t len, size_t *used)
{
    bool             begins = !skim->begun;
    enum h1_skimming outcome;

    if (is_known(skim, bytes, len)) {
        *used = take_known(skim, bytes);
        return H1_SKIM_DONE;
    }
    outcome = parse(skim, bytes, len, used);
    if (outcome == H1_SKIM_DONE && begins && skim->memo)
        remember(skim, bytes, *used);
    return outcome;
}

enum h1_skimming h1_skim_close(struct h1_skim *skim)
{
    size_t used;

    if (!skim->begun)
        return H1_SKIM_MORE;
    /* No bytes: so the parser is told of the end. */
    return parse(skim, NULL, 0, &used) == H1_SKIM_DONE ? H1_SKIM_DONE : H1_SKIM_WRONG;
}
