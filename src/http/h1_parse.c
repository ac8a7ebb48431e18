#include "http/h1_parse.h"

#include <assert.h>
#include <http_parser.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "http/h1_response.h"
#include "http/h1_rules.h"
#include "http/message.h"

_Static_assert(sizeof(struct http_parser) <= sizeof(((struct h1_body *)0)->parser),
               "h1_body has room for http-parser");

/* What the callbacks fill. Fields go to an array that has room for all that the gate counted. */
struct parse {
    struct str    target;
    struct field *fields;
    unsigned      count;
    unsigned      room;
    bool          value_missing; /* a name has come and its value has not */
    struct str    data;          /* of a body */
    bool          complete;
    bool          skips_body; /* a response's: HEAD asked for it */
};

/* --- fields --------------------------------------------------------------------------------------- */

/* In place: the bytes are a copy of our own. */
static void lower_case(const char *at, size_t len)
{
    char *byte = (char *)at;

    for (size_t i = 0; i < len; i++)
        if (byte[i] >= 'A' && byte[i] <= 'Z')
            byte[i] |= 0x20;
}

/* Any result but 0 ends parsing with an error: two names in a row, or a value in two pieces, would
 * be a folded line or a split buffer, and the gate lets neither through. */
static int on_field(struct http_parser *parser, const char *at, size_t len)
{
    struct parse *parse = parser->data;

    if (parse->value_missing || parse->count == parse->room)
        return -1;
    lower_case(at, len);
    parse->fields[parse->count].name = str_make(at, len);
    parse->fields[parse->count].id   = field_id_of(str_make(at, len));
    parse->value_missing             = true;
    return 0;
}

static int on_value(struct http_parser *parser, const char *at, size_t len)
{
    struct parse *parse = parser->data;

    if (!parse->value_missing)
        return -1;
    parse->fields[parse->count++].value = str_trim(str_make(at, len));
    parse->value_missing                = false;
    return 0;
}

static int on_target(struct http_parser *parser, const char *at, size_t len)
{
    struct parse *parse = parser->data;

    parse->target = str_make(at, len);
    return 0;
}

/* Without this an Upgrade field, whatever it names, ends parsing in the middle of the connection. 1
 * tells the parser that no body follows. */
static int on_fields_end(struct http_parser *parser)
{
    struct parse *parse = parser->data;

    parser->upgrade = 0;
    return parse->skips_body;
}

static int on_data(struct http_parser *parser, const char *at, size_t len)
{
    struct parse *parse = parser->data;

    parse->data = str_make(at, len);
    return 0;
}

static int on_complete(struct http_parser *parser)
{
    struct parse *parse = parser->data;

    parse->complete = true;
    return 0;
}

static const struct http_parser_settings callbacks = {
    .on_url              = on_target,
    .on_header_field     = on_field,
    .on_header_value     = on_value,
    .on_headers_complete = on_fields_end,
    .on_body             = on_data,
    .on_message_complete = on_complete,
};

/* --- the library ----------------------------------------------------------------------------------- */

/* The parser's own limit is one for the process and counts anew for each chunk; ours are the
 * gate's. */
static void lift_limit(void)
{
    http_parser_set_max_header_size(UINT32_MAX);
}

void h1_parse_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, lift_limit);
}

static bool execute(struct http_parser *parser, struct parse *parse, struct str bytes)
{
    size_t parsed;

    assert(bytes.len > 0); /* 0 would mean the end of the stream */
    parser->data = parse;
    parsed       = http_parser_execute(parser, &callbacks, bytes.at, bytes.len);
    parser->data = NULL;
    return parsed == bytes.len && HTTP_PARSER_ERRNO(parser) == HPE_OK;
}

static bool refused(struct h1_fault *fault, unsigned short status, const char *reason)
{
    *fault = (struct h1_fault){ status, reason };
    return false;
}

static bool refused_by_parser(struct h1_fault *fault, const struct http_parser *parser)
{
    switch (HTTP_PARSER_ERRNO(parser)) {
    case HPE_INVALID_METHOD: return refused(fault, 501, "the method is not known");
    case HPE_INVALID_VERSION: return refused(fault, 505, "the HTTP version is not known");
    case HPE_INVALID_CONTENT_LENGTH:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return refused(fault, 400, "the Content-Length field is malformed");
    default: return refused(fault, 400, "the header section is malformed");
    }
}

/* --- the head ----------------------------------------------------------------------------------------- */

/* RFC 9112, 5.1 lets tabs stand behind a value; the parser does not know that of Content-Length and
 * Transfer-Encoding. They become spaces, which it passes over and str_trim() takes away. */
static void blank_trailing_tabs(char *head, size_t len)
{
    char *end = head + len;

    for (char *at = memchr(head, '\t', len); at; at = memchr(at, '\t', (size_t)(end - at))) {
        char *behind = at;

        while (*behind == '\t' || *behind == ' ') /* a CR comes at the latest */
            behind++;
        if (*behind == '\r')
            memset(at, ' ', (size_t)(behind - at));
        at = behind;
    }
}

static struct field *room_for_fields(struct arena *arena, unsigned count)
{
    return arena_alloc(arena, count * sizeof(struct field));
}

/* The method stands at the head's beginning, up to the first space. */
static void read_request_line(struct request *request, const struct http_parser *parser,
                              struct str head, struct str target)
{
    *request               = (struct request){ 0 };
    request->method        = str_make(head.at, str_find(head, ' '));
    request->method_id     = (unsigned char)parser->method;
    request->target        = target;
    request->version_major = 1;
    request->version_minor = (unsigned char)parser->http_minor;
}

static void init_body(struct h1_body *body, const struct request *request,
                      const struct http_parser *parser)
{
    *body = (struct h1_body){
        .chunked = request->chunked,
        .left    = request->chunked ? 0 : request->content_length,
    };
    if (!body->chunked)
        return;
    h1_chunk_init(&body->gate);
    memcpy(body->parser, parser, sizeof(*parser));
}

bool h1_parse_head(struct arena *arena, struct str head, unsigned fields, struct request *request,
                   struct h1_body *body, struct h1_fault *fault)
{
    struct str         copy  = arena_copy(arena, head);
    struct parse       parse = { .fields = room_for_fields(arena, fields), .room = fields };
    struct http_parser parser;

    blank_trailing_tabs((char *)copy.at, copy.len);
    http_parser_init(&parser, HTTP_REQUEST);
    if (!execute(&parser, &parse, copy))
        return refused_by_parser(fault, &parser);
    if (parse.count != fields)
        return refused(fault, 400, "the header section is malformed");

    read_request_line(request, &parser, copy, parse.target);
    request->fields      = parse.fields;
    request->field_count = parse.count;
    request_index_fields(request);
    if (!h1_rules_apply(arena, request, fault))
        return false;
    init_body(body, request, &parser);
    return true;
}

/* --- the body ---------------------------------------------------------------------------------------- */

uint64_t h1_body_announced(const struct h1_body *body, const struct request *request)
{
    return body->chunked ? body->gate.announced : request->content_length;
}

static enum h1_reading read_plain(struct h1_body *body, const char *bytes, size_t len, size_t *used,
                                  struct str *data)
{
    *used = len < body->left ? len : (size_t)body->left;
    *data = str_make(bytes, *used);
    if (body->left != UINT64_MAX)
        body->left -= *used;
    return body->left ? H1_MORE : H1_DONE;
}

struct trailers {
    struct field *fields;
    unsigned      count;
};

/* Trailer fields are kept apart from header fields (RFC 9110, 6.5.1), so none can change what the
 * head said. */
static bool parse_trailers(struct arena *arena, struct h1_body *body, struct str section,
                           struct trailers *trailers)
{
    struct http_parser *parser = (struct http_parser *)body->parser;
    struct str          copy   = arena_copy(arena, section);
    struct parse        parse  = { .room = body->gate.trailers.fields };

    parse.fields = room_for_fields(arena, parse.room);
    if (!execute(parser, &parse, copy) || !parse.complete || parse.count != parse.room)
        return refused(&body->gate.fault, 400, "the trailer section is malformed");
    *trailers = (struct trailers){ parse.fields, parse.count };
    return true;
}

static enum h1_reading read_chunked(struct arena *arena, struct h1_body *body,
                                    const struct h1_limits *limits, const char *bytes, size_t len,
                                    size_t *used, struct str *data, struct trailers *trailers)
{
    enum h1_reading reading = h1_chunk_read(&body->gate, limits, bytes, len, used);
    struct parse    parse   = { 0 };

    if (reading == H1_REFUSED || !*used)
        return reading;
    if (reading == H1_DONE) {
        struct str section = str_make(bytes, *used);

        return parse_trailers(arena, body, section, trailers) ? H1_DONE : H1_REFUSED;
    }
    if (!execute((struct http_parser *)body->parser, &parse, str_make(bytes, *used)) ||
        parse.complete) {
        refused(&body->gate.fault, 400, "a malformed chunk");
        return H1_REFUSED;
    }
    *data = parse.data;
    return H1_MORE;
}

static enum h1_reading read_body(struct arena *arena, struct h1_body *body,
                                 const struct h1_limits *limits, const char *bytes, size_t len,
                                 size_t *used, struct str *data, struct trailers *trailers)
{
    *data = STR_NONE;
    if (!body->chunked)
        return read_plain(body, bytes, len, used, data);
    return read_chunked(arena, body, limits, bytes, len, used, data, trailers);
}

enum h1_reading h1_parse_body(struct arena *arena, struct h1_body *body,
                              const struct h1_limits *limits, const char *bytes, size_t len,
                              size_t *used, struct str *data, struct request *request)
{
    struct trailers trailers = { 0 };
    enum h1_reading reading  = read_body(arena, body, limits, bytes, len, used, data, &trailers);

    if (reading == H1_DONE && body->chunked) {
        request->trailers      = trailers.fields;
        request->trailer_count = trailers.count;
    }
    return reading;
}

/* --- responses ------------------------------------------------------------------------------------ */

static void init_response_body(struct h1_body *body, const struct response *response,
                               const struct http_parser *parser)
{
    *body = (struct h1_body){
        .chunked = response->framing == RESPONSE_CHUNKED,
        .left    = response->framing == RESPONSE_UNTIL_CLOSE ? UINT64_MAX
                   : response->framing == RESPONSE_LENGTH    ? response->content_length
                                                             : 0,
    };
    if (!body->chunked)
        return;
    h1_chunk_init(&body->gate);
    memcpy(body->parser, parser, sizeof(*parser));
}

static bool refused_response(struct h1_fault *fault, const struct http_parser *parser)
{
    refused_by_parser(fault, parser);
    fault->status = 502;
    return false;
}

bool h1_parse_response_head(struct arena *arena, struct str head, unsigned fields,
                            bool answers_head, struct response *response, struct h1_body *body,
                            struct h1_fault *fault)
{
    struct str   copy  = arena_copy(arena, head);
    struct parse parse = {
        .fields     = room_for_fields(arena, fields),
        .room       = fields,
        .skips_body = answers_head,
    };
    struct http_parser parser;

    blank_trailing_tabs((char *)copy.at, copy.len);
    http_parser_init(&parser, HTTP_RESPONSE);
    if (!execute(&parser, &parse, copy))
        return refused_response(fault, &parser);
    if (parse.count != fields)
        return refused(fault, 502, "the header section is malformed");

    *response = (struct response){
        .status        = parser.status_code,
        .version_minor = (unsigned char)parser.http_minor,
        .fields        = parse.fields,
        .field_count   = parse.count,
    };
    if (!h1_response_apply(response, answers_head, fault))
        return false;
    init_response_body(body, response, &parser);
    return true;
}

enum h1_reading h1_parse_response_body(struct arena *arena, struct h1_body *body,
                                       const struct h1_limits *limits, const char *bytes,
                                       size_t len, size_t *used, struct str *data,
                                       struct response *response)
{
    struct trailers trailers = { 0 };
    enum h1_reading reading  = read_body(arena, body, limits, bytes, len, used, data, &trailers);

    if (reading == H1_DONE && body->chunked) {
        response->trailers      = trailers.fields;
        response->trailer_count = trailers.count;
    }
    return reading;
}
