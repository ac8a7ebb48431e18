#include "http/h1_response.h"

#include "base/str.h"
#include "http/h1_gate.h"
#include "http/message.h"

static bool refused(struct h1_fault *fault, const char *reason)
{
    *fault = (struct h1_fault){ 502, reason };
    return false;
}

static const struct field *find(const struct response *response, enum field_id id, unsigned *count)
{
    const struct field *first = NULL;

    *count = 0;
    for (unsigned i = 0; i < response->field_count; i++) {
        if (response->fields[i].id != id)
            continue;
        if (!first)
            first = &response->fields[i];
        ++*count;
    }
    return first;
}

/* RFC 9112, 6.3: two lengths, also equal ones, mean that somebody on the way is confused. */
static bool read_length(struct response *response, struct h1_fault *fault)
{
    unsigned            count;
    const struct field *length = find(response, FIELD_CONTENT_LENGTH, &count);

    response->content_length = UINT64_MAX;
    if (!length)
        return true;
    if (count > 1)
        return refused(fault, "more than one Content-Length field");
    if (!str_to_u64(length->value, INT64_MAX, &response->content_length))
        return refused(fault, "the Content-Length field is malformed");
    return true;
}

/* RFC 9112, 6.1. Other codings than chunked were never asked for (we send no TE). */
static bool read_coding(struct response *response, bool *chunked, struct h1_fault *fault)
{
    unsigned            count;
    const struct field *coding = find(response, FIELD_TRANSFER_ENCODING, &count);

    *chunked = coding != NULL;
    if (!coding)
        return true;
    if (count > 1 || !str_is_nocase(coding->value, STR("chunked")))
        return refused(fault, "the transfer coding is not known");
    if (response->version_minor == 0)
        return refused(fault, "Transfer-Encoding in HTTP/1.0");
    if (response->content_length != UINT64_MAX)
        return refused(fault, "both Transfer-Encoding and Content-Length");
    return true;
}

static bool has_no_body(const struct response *response, bool answers_head)
{
    return answers_head || response->status < 200 || response->status == 204 ||
           response->status == 304;
}

static bool read_framing(struct response *response, bool answers_head, struct h1_fault *fault)
{
    bool chunked;

    if (!read_length(response, fault) || !read_coding(response, &chunked, fault))
        return false;
    if (has_no_body(response, answers_head))
        response->framing = RESPONSE_NO_BODY;
    else if (chunked)
        response->framing = RESPONSE_CHUNKED;
    else if (response->content_length != UINT64_MAX)
        response->framing = RESPONSE_LENGTH;
    else
        response->framing = RESPONSE_UNTIL_CLOSE;
    return true;
}

/* RFC 9110, 8.6: a 204 announces no body. One that does may send it still, and what comes behind the
 * next request would be taken for its response. */
static bool may_send_more(const struct response *response)
{
    unsigned codings;
    bool     has_length = response->content_length != UINT64_MAX && response->content_length > 0;

    return response->status == 204 &&
           (has_length || find(response, FIELD_TRANSFER_ENCODING, &codings));
}

/* RFC 9112, 9.3: close wins over keep-alive, wherever in the list they stand. */
static void read_persistence(struct response *response)
{
    bool closes = response->framing == RESPONSE_UNTIL_CLOSE || may_send_more(response),
         keeps  = false;

    for (unsigned i = 0; i < response->field_count; i++) {
        struct str rest = response->fields[i].value, option;

        while (response->fields[i].id == FIELD_CONNECTION && str_next(&rest, ',', &option)) {
            closes |= str_is_nocase(option, STR("close"));
            keeps |= str_is_nocase(option, STR("keep-alive"));
        }
    }
    response->keep_alive = !closes && (response->version_minor > 0 || keeps);
}

bool h1_response_apply(struct response *response, bool answers_head, struct h1_fault *fault)
{
    if (!read_framing(response, answers_head, fault))
        return false;
    read_persistence(response);
    return true;
}
