#include "http/message.h"

#include "base/compiler.h"

/* The length leaves at most four candidates, and comparing with a constant is an instruction or
 * two: no search, no hash. */
#define IS(literal) (memcmp(name.at, literal, sizeof(literal) - 1) == 0)

static enum field_id id_of_length_6(struct str name)
{
    if (IS("accept"))
        return FIELD_ACCEPT;
    if (IS("cookie"))
        return FIELD_COOKIE;
    if (IS("origin"))
        return FIELD_ORIGIN;
    return IS("expect") ? FIELD_EXPECT : FIELD_OTHER;
}

enum field_id field_id_of(struct str name)
{
    switch (name.len) {
    case 4: return IS("host") ? FIELD_HOST : FIELD_OTHER;
    case 5: return IS("range") ? FIELD_RANGE : FIELD_OTHER;
    case 6: return id_of_length_6(name);
    case 7: return IS("upgrade") ? FIELD_UPGRADE : FIELD_OTHER;
    case 8: return IS("if-match") ? FIELD_IF_MATCH : IS("if-range") ? FIELD_IF_RANGE : FIELD_OTHER;
    case 10:
        return IS("connection")   ? FIELD_CONNECTION
               : IS("user-agent") ? FIELD_USER_AGENT
                                  : FIELD_OTHER;
    case 12: return IS("content-type") ? FIELD_CONTENT_TYPE : FIELD_OTHER;
    case 13:
        return IS("authorization")   ? FIELD_AUTHORIZATION
               : IS("if-none-match") ? FIELD_IF_NONE_MATCH
                                     : FIELD_OTHER;
    case 14: return IS("content-length") ? FIELD_CONTENT_LENGTH : FIELD_OTHER;
    case 15: return IS("accept-encoding") ? FIELD_ACCEPT_ENCODING : FIELD_OTHER;
    case 16: return IS("content-encoding") ? FIELD_CONTENT_ENCODING : FIELD_OTHER;
    case 17:
        return IS("transfer-encoding")   ? FIELD_TRANSFER_ENCODING
               : IS("if-modified-since") ? FIELD_IF_MODIFIED_SINCE
                                         : FIELD_OTHER;
    case 19: return IS("if-unmodified-since") ? FIELD_IF_UNMODIFIED_SINCE : FIELD_OTHER;
    default: return FIELD_OTHER;
    }
}

_Static_assert(FIELD_ID_COUNT <= 32, "request.repeated has a bit for each id");

void request_index_fields(struct request *request)
{
    memset(request->first, 0xff, sizeof(request->first)); /* -1 everywhere */
    request->repeated = 0;
    for (unsigned i = 0; i < request->field_count; i++) {
        enum field_id id = request->fields[i].id;

        if (request->first[id] < 0)
            request->first[id] = (short)i;
        else
            request->repeated |= UINT32_C(1) << id;
    }
}

const struct field *request_field(const struct request *request, enum field_id id)
{
    short index = request->first[id];

    return index < 0 ? NULL : &request->fields[index];
}

const struct field *request_field_by_name(const struct request *request, struct str lower_name)
{
    enum field_id id = field_id_of(lower_name);

    if (id != FIELD_OTHER)
        return request_field(request, id);
    for (unsigned i = 0; i < request->field_count; i++)
        if (str_is(request->fields[i].name, lower_name))
            return &request->fields[i];
    return NULL;
}

#define LINE(status, reason) [(status)-100] = STR_INIT("HTTP/1.1 " #status " " reason "\r\n")

static const struct str status_lines[] = {
    LINE(100, "Continue"),
    LINE(101, "Switching Protocols"),
    LINE(103, "Early Hints"),
    LINE(200, "OK"),
    LINE(201, "Created"),
    LINE(202, "Accepted"),
    LINE(203, "Non-Authoritative Information"),
    LINE(204, "No Content"),
    LINE(205, "Reset Content"),
    LINE(206, "Partial Content"),
    LINE(207, "Multi-Status"),
    LINE(208, "Already Reported"),
    LINE(226, "IM Used"),
    LINE(300, "Multiple Choices"),
    LINE(301, "Moved Permanently"),
    LINE(302, "Found"),
    LINE(303, "See Other"),
    LINE(304, "Not Modified"),
    LINE(305, "Use Proxy"),
    LINE(307, "Temporary Redirect"),
    LINE(308, "Permanent Redirect"),
    LINE(400, "Bad Request"),
    LINE(401, "Unauthorized"),
    LINE(402, "Payment Required"),
    LINE(403, "Forbidden"),
    LINE(404, "Not Found"),
    LINE(405, "Method Not Allowed"),
    LINE(406, "Not Acceptable"),
    LINE(407, "Proxy Authentication Required"),
    LINE(408, "Request Timeout"),
    LINE(409, "Conflict"),
    LINE(410, "Gone"),
    LINE(411, "Length Required"),
    LINE(412, "Precondition Failed"),
    LINE(413, "Content Too Large"),
    LINE(414, "URI Too Long"),
    LINE(415, "Unsupported Media Type"),
    LINE(416, "Range Not Satisfiable"),
    LINE(417, "Expectation Failed"),
    LINE(418, "I'm a Teapot"),
    LINE(421, "Misdirected Request"),
    LINE(422, "Unprocessable Content"),
    LINE(423, "Locked"),
    LINE(424, "Failed Dependency"),
    LINE(425, "Too Early"),
    LINE(426, "Upgrade Required"),
    LINE(428, "Precondition Required"),
    LINE(429, "Too Many Requests"),
    LINE(431, "Request Header Fields Too Large"),
    LINE(451, "Unavailable For Legal Reasons"),
    LINE(500, "Internal Server Error"),
    LINE(501, "Not Implemented"),
    LINE(502, "Bad Gateway"),
    LINE(503, "Service Unavailable"),
    LINE(504, "Gateway Timeout"),
    LINE(505, "HTTP Version Not Supported"),
    LINE(506, "Variant Also Negotiates"),
    LINE(507, "Insufficient Storage"),
    LINE(508, "Loop Detected"),
    LINE(510, "Not Extended"),
    LINE(511, "Network Authentication Required"),
};

enum { REASON_AT = sizeof("HTTP/1.1 200 ") - 1 };

struct str status_line(unsigned status)
{
    if (status < 100 || status - 100 >= ARRAY_LEN(status_lines))
        return STR_NONE;
    return status_lines[status - 100];
}

struct str status_reason(unsigned status)
{
    struct str line = status_line(status);

    if (!line.len)
        return STR("Unknown");
    return str_make(line.at + REASON_AT, line.len - REASON_AT - 2);
}
