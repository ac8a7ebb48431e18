/* http/message.h - a request's head and an answer's head as spans and tables; no protocol. */
#ifndef HTTP_MESSAGE_H
#define HTTP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define ANSWER_LENGTH_UNKNOWN UINT64_MAX

/* The fields that the server itself looks at; found while parsing, so that no one searches. */
enum field_id {
    FIELD_OTHER,
    FIELD_HOST,
    FIELD_CONNECTION,
    FIELD_CONTENT_LENGTH,
    FIELD_TRANSFER_ENCODING,
    FIELD_EXPECT,
    FIELD_UPGRADE,
    FIELD_CONTENT_TYPE,
    FIELD_CONTENT_ENCODING,
    FIELD_ACCEPT,
    FIELD_ACCEPT_ENCODING,
    FIELD_COOKIE,
    FIELD_IF_NONE_MATCH,
    FIELD_IF_MODIFIED_SINCE,
    FIELD_IF_MATCH,
    FIELD_IF_UNMODIFIED_SINCE,
    FIELD_IF_RANGE,
    FIELD_RANGE,
    FIELD_USER_AGENT,
    FIELD_AUTHORIZATION,
    FIELD_ORIGIN,
    FIELD_ID_COUNT,
    /* Of an answer's: its bytes were looked at, and cannot have changed. */
    FIELD_CHECKED = FIELD_ID_COUNT
};

struct field {
    struct str    name;  /* a request's is lower case already */
    struct str    value; /* without blanks at its ends */
    enum field_id id;    /* of an answer's: FIELD_CHECKED or nothing */
};

/* Every span points into the exchange's arena (or a connection's head buffer that lives as long). */
struct request {
    struct str    method;    /* "GET" */
    unsigned char method_id; /* its number in http-parser, which is that of http/route.h */
    struct str    target;    /* as sent: path and query, or "*"; absolute-form is cut to this */
    struct str    path;      /* target without the query, still percent-encoded */
    struct str    query;     /* behind "?", may be empty */
    struct str    host;      /* the Host that counts (RFC 9112, 3.2.2) with its port; "" in 1.0 */
    struct field *fields;    /* in order of arrival */
    unsigned      field_count;
    struct field *trailers;
    unsigned      trailer_count;
    uint64_t      content_length; /* 0 without one; UINT64_MAX when chunked */
    struct str    upgrade; /* what it asks to switch to, as sent (RFC 9110, 7.8; RFC 8441), or "" */
    unsigned char version_major; /* 1, 2 */
    unsigned char version_minor; /* HTTP/1.x */
    bool          has_body;      /* Content-Length > 0 or chunked */
    bool          chunked;
    bool          expects_continue;
    bool          keep_alive;
    uint32_t      repeated;              /* bit 1 << id: more than one field has that id */
    short         first[FIELD_ID_COUNT]; /* index of the first field of each id, or -1 */
};

/* Id of a lower-case name; FIELD_OTHER for what the server does not look at. */
enum field_id field_id_of(struct str lower_name);

/* Fills `first` and `repeated` from the ids of the fields. */
void request_index_fields(struct request *request);

/* The first of its kind; NULL when there is none. */
const struct field *request_field(const struct request *request, enum field_id id);
const struct field *request_field_by_name(const struct request *request, struct str lower_name);

struct answer {
    unsigned            status; /* 200-599 */
    const struct field *fields; /* `id` is not looked at */
    unsigned            field_count;
    struct str content_type; /* its own slot, since nearly every answer has one; "" = none */
};

/* "HTTP/1.1 404 Not Found\r\n"; empty for a status outside the registry. */
struct str status_line(unsigned status);
/* "Not Found"; "Unknown" for a status outside the registry. */
struct str status_reason(unsigned status);

#endif
