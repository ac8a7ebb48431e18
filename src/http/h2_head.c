#include "http/h2_head.h"

#include <string.h>

#include "base/arena.h"
#include "http/chars.h"
#include "http/h1_rules.h"
#include "http/message.h"
#include "http/route.h"

enum {
    FIRST_ROOM  = 8,                        /* fields; then twice as many */
    LINE_BYTES  = sizeof("  HTTP/1.1") - 1, /* beside method and target */
    FIELD_BYTES = sizeof(": \r\n") - 1,
};

void h2_head_init(struct h2_head *head, struct arena *arena, const struct h1_limits *limits)
{
    *head = (struct h2_head){ .arena = arena, .limits = limits, .line_bytes = LINE_BYTES };
}

static bool refuse(struct h2_head *head, unsigned short status, const char *reason)
{
    if (!head->fault.status)
        head->fault = (struct h1_fault){ status, reason };
    return false;
}

/* --- fields --------------------------------------------------------------------------------------- */

static struct field *next_field(struct h2_head *head)
{
    if (head->count == head->room) {
        unsigned      room   = head->room ? 2 * head->room : FIRST_ROOM;
        struct field *fields = arena_alloc(head->arena, room * sizeof(*fields));

        if (head->count)
            memcpy(fields, head->fields, head->count * sizeof(*fields));
        head->fields = fields;
        head->room   = room;
    }
    return &head->fields[head->count++];
}

static bool is_of_the_line(struct str name)
{
    return str_is(name, STR(":method")) || str_is(name, STR(":path"));
}

static bool count(struct h2_head *head, struct str name, struct str value)
{
    head->bytes += name.len + value.len + FIELD_BYTES;
    head->lines += name.at[0] != ':' || str_is(name, STR(":authority"));
    head->line_bytes += is_of_the_line(name) ? value.len : 0;
    if (head->line_bytes > head->limits->line_bytes)
        return refuse(head, 414, "the request line is too long");
    if (head->bytes > head->limits->head_bytes)
        return refuse(head, 431, "the header section is too large");
    if (head->lines > head->limits->fields)
        return refuse(head, 431, "too many header fields");
    return true;
}

/* A handler finds the authority where HTTP/1 has it. The scheme is for proxies: the connection has
 * one. */
static void add_pseudo(struct h2_head *head, struct str name, struct str value)
{
    if (str_is(name, STR(":method")))
        head->method = value;
    else if (str_is(name, STR(":path")))
        head->target = value;
    else if (str_is(name, STR(":protocol")))
        head->protocol = value;
    else if (str_is(name, STR(":authority"))) {
        head->authority   = value;
        *next_field(head) = (struct field){ STR("host"), value, FIELD_HOST };
    }
}

/* RFC 9113, 8.3.1: beside ":authority" a Host may stand that says the same. */
static void check_second_host(struct h2_head *head, struct str host)
{
    if (!str_is_nocase(host, head->authority))
        refuse(head, 400, "the Host field differs from the authority");
}

static void add_field(struct h2_head *head, struct str name, struct str value)
{
    enum field_id id = field_id_of(name);

    if (id == FIELD_HOST && head->authority.at) {
        check_second_host(head, value);
        return;
    }
    head->cookies += id == FIELD_COOKIE;
    *next_field(head) = (struct field){ name, value, id };
}

void h2_head_add(struct h2_head *head, struct str name, bool name_stays, struct str value)
{
    struct str kept;

    if (!count(head, name, value) || head->fault.status)
        return;
    kept = arena_copy(head->arena, value);
    if (name.at[0] == ':')
        add_pseudo(head, name, kept);
    else
        add_field(head, name_stays ? name : arena_copy(head->arena, name), kept);
}

/* --- rules ------------------------------------------------------------------------------------------ */

static size_t cookie_bytes(const struct h2_head *head)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < head->count; i++)
        if (head->fields[i].id == FIELD_COOKIE)
            bytes += head->fields[i].value.len + sizeof("; ") - 1;
    return bytes;
}

/* RFC 9113, 8.2.3: cookies come one by one, for the sake of compression, and are one field to all
 * who do not speak HTTP/2. */
static void join_cookies(struct h2_head *head)
{
    char    *joined = arena_alloc(head->arena, cookie_bytes(head)), *to = joined;
    unsigned kept = 0, first = 0;

    for (unsigned i = 0; i < head->count; i++) {
        struct field field = head->fields[i];

        if (field.id != FIELD_COOKIE) {
            head->fields[kept++] = field;
            continue;
        }
        if (to == joined)
            first = kept++;
        else
            to = (char *)memcpy(to, "; ", 2) + 2;
        memcpy(to, field.value.at, field.value.len);
        to += field.value.len;
    }
    head->fields[first] =
        (struct field){ STR("cookie"), str_make(joined, (size_t)(to - joined)), FIELD_COOKIE };
    head->count = kept;
}

/* RFC 8441: who asks for a tunnel finds the route that an upgrade in HTTP/1.1 finds, by GET. */
static bool read_method(struct h2_head *head, struct request *request)
{
    int id;

    if (str_is(request->method, STR("CONNECT"))) {
        if (!head->protocol.len)
            return refuse(head, 501, "this server is no proxy");
        request->upgrade = head->protocol;
        request->method  = STR("GET");
    }
    id = route_method_of(request->method);
    if (id < 0)
        return refuse(head, 501, "the method is not known");
    request->method_id = (unsigned char)id;
    return true;
}

static bool read_host(struct h2_head *head, struct request *request)
{
    const struct field *host = request_field(request, FIELD_HOST);

    if (!host)
        return refuse(head, 400, "the Host field is missing");
    request->host = host->value;
    if (host->value.len && !h1_rules_is_authority(host->value))
        return refuse(head, 400, "the authority is malformed");
    return true;
}

static bool read_target(struct h2_head *head, struct request *request)
{
    struct str target = request->target;

    if (!target.len ||
        chars_skip(target.at, target.at + target.len, CHARS_TARGET) != target.at + target.len)
        return refuse(head, 400, "the request target is malformed");
    return h1_rules_read_origin(request, &head->fault);
}

/* The stream frames the body; a length is what the client says of it. */
static bool read_framing(struct h2_head *head, struct request *request, bool ends)
{
    const struct field *length = request_field(request, FIELD_CONTENT_LENGTH);

    if (length) {
        if (!str_to_u64(length->value, INT64_MAX, &request->content_length))
            return refuse(head, 400, "the Content-Length field is malformed");
    } else if (!ends && !request->upgrade.len) {
        request->content_length = UINT64_MAX;
        request->chunked        = true;
    }
    request->has_body = request->content_length > 0;
    if (request->has_body && request->upgrade.len)
        return refuse(head, 400, "what follows belongs to the tunnel, and is no body");
    return true;
}

static bool read_expectation(struct h2_head *head, struct request *request)
{
    const struct field *expect = request_field(request, FIELD_EXPECT);

    if (!expect)
        return true;
    if (request->repeated & UINT32_C(1) << FIELD_EXPECT ||
        !str_is_nocase(expect->value, STR("100-continue")))
        return refuse(head, 417, "the expectation is not known");
    request->expects_continue = request->has_body;
    return true;
}

bool h2_head_end(struct h2_head *head, struct request *request, bool ends)
{
    request->method        = head->method;
    request->target        = head->target;
    request->version_major = 2;
    request->keep_alive    = true;
    if (head->fault.status)
        return false;
    if (head->cookies > 1)
        join_cookies(head);
    request->fields      = head->fields;
    request->field_count = head->count;
    request_index_fields(request);
    return read_method(head, request) && read_host(head, request) && read_target(head, request) &&
           read_framing(head, request, ends) && read_expectation(head, request);
}

bool h2_head_end_trailers(struct h2_head *head, struct request *request)
{
    if (head->fault.status)
        return false;
    request->trailers      = head->fields;
    request->trailer_count = head->count;
    return true;
}
