#include "http/h1_gate.h"

#include <string.h>

#include "base/codec.h"
#include "base/compiler.h"
#include "http/chars.h"

/* --- faults ------------------------------------------------------------------------------------ */

static enum h1_reading refuse(struct h1_fault *fault, unsigned short status, const char *reason)
{
    *fault = (struct h1_fault){ status, reason };
    return H1_REFUSED;
}

/* For checks that say yes or no. */
static bool refused(struct h1_fault *fault, unsigned short status, const char *reason)
{
    refuse(fault, status, reason);
    return false;
}

enum line_end { END_MISSING, END_WELL, END_BAD };

/* What a control character at AT means; FAULT is set when it is bad. */
static enum line_end judge_line_end(struct h1_fault *fault, const char *at, const char *end)
{
    if (at == end || (*at == '\r' && at + 1 == end))
        return END_MISSING;
    if (*at == '\r' && at[1] == '\n')
        return END_WELL;
    refuse(fault, 400,
           *at == '\n'   ? "a line ends in LF without CR"
           : *at == '\r' ? "a CR without LF"
                         : "a control character");
    return END_BAD;
}

/* --- the request line ---------------------------------------------------------------------------- */

enum { METHOD_BYTES_MAX = 32, VERSION_BYTES = sizeof("HTTP/1.1") - 1 };

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* RFC 9112, 2.3: "HTTP/" DIGIT "." DIGIT, case-sensitive. Any 1.x is served as 1.1 (RFC 9110, 2.5). */
static bool check_version(struct h1_fault *fault, const char *at, const char *end)
{
    if (end - at != VERSION_BYTES || memcmp(at, "HTTP/", 5) != 0 || !is_digit(at[5]) ||
        at[6] != '.' || !is_digit(at[7]))
        return refused(fault, 400, "the request line does not end in an HTTP version");
    if (at[5] != '1')
        return refused(fault, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    return true;
}

/* RFC 9112, 3: method SP request-target SP HTTP-version, and nothing more lenient. */
static bool check_request_line(struct h1_fault *fault, const char *at, const char *end)
{
    const char *method_end = chars_skip(at, end, CHARS_TOKEN);
    const char *target_end;

    if (method_end == at || method_end == end || *method_end != ' ')
        return refused(fault, 400, "the request line does not begin with a method");
    if (method_end - at > METHOD_BYTES_MAX)
        return refused(fault, 501, "the method is not known");
    target_end = chars_skip(method_end + 1, end, CHARS_TARGET);
    if (target_end == method_end + 1 || target_end == end || *target_end != ' ')
        return refused(fault, 400, "the request target is malformed");
    return check_version(fault, target_end + 1, end);
}

/* --- the status line ---------------------------------------------------------------------------- */

enum { STATUS_BYTES = sizeof("HTTP/1.1 200") - 1 };

/* RFC 9112, 4: HTTP-version SP status-code SP [ reason-phrase ]. The space before an empty phrase
 * is left out by many servers, and means nothing. */
static bool check_status_line(struct h1_fault *fault, const char *at, const char *end)
{
    if (end - at < STATUS_BYTES || memcmp(at, "HTTP/1.", 7) != 0 || !is_digit(at[7]) ||
        at[8] != ' ')
        return refused(fault, 502, "the response does not begin with an HTTP/1 status line");
    if (at[9] < '1' || at[9] > '5' || !is_digit(at[10]) || !is_digit(at[11]))
        return refused(fault, 502, "the response's status is no number from 100 to 599");
    if (end - at > STATUS_BYTES && at[STATUS_BYTES] != ' ')
        return refused(fault, 502, "the response's status line is malformed");
    return true;
}

/* --- field lines ----------------------------------------------------------------------------------- */

/* RFC 9112, 5: field-name ":" ..., no blank between them (5.1), no folded line (5.2). The value's
 * bytes were looked at already: they are no control characters. */
static bool check_field_line(struct h1_fault *fault, const char *at, const char *end)
{
    const char *name_end = chars_skip(at, end, CHARS_TOKEN);

    if (likely(name_end > at && name_end < end && *name_end == ':'))
        return true;
    if (*at == ' ' || *at == '\t')
        return refused(fault, 400, "a field line begins with a blank");
    if (name_end < end && (*name_end == ' ' || *name_end == '\t'))
        return refused(fault, 400, "a blank in or behind a field name");
    return refused(fault, 400, "a malformed field line");
}

/* --- the head --------------------------------------------------------------------------------------- */

void h1_gate_init(struct h1_head_gate *gate)
{
    *gate = (struct h1_head_gate){ 0 };
}

void h1_gate_init_response(struct h1_head_gate *gate)
{
    *gate = (struct h1_head_gate){ .of_response = true };
}

void h1_gate_init_trailers(struct h1_head_gate *gate)
{
    *gate = (struct h1_head_gate){ .in_fields = true };
}

/* RFC 9112, 2.2: one empty line before a request is passed over, since old clients end a body
 * with a CRLF that they do not count. A second one is not theirs. */
static enum h1_reading pass_empty_line(struct h1_head_gate *gate)
{
    if (gate->start)
        return refuse(&gate->fault, 400, "empty lines before the request");
    gate->start = gate->scanned;
    return H1_MORE;
}

static bool check_first_line(struct h1_head_gate *gate, const char *at, const char *end)
{
    return gate->of_response ? check_status_line(&gate->fault, at, end)
                             : check_request_line(&gate->fault, at, end);
}

/* One complete line of LEN bytes; `scanned` stands behind its CRLF. DONE: it was the empty one. */
static enum h1_reading take_line(struct h1_head_gate *gate, const struct h1_limits *limits,
                                 const char *line, size_t len)
{
    if (!gate->in_fields) {
        if (!len && !gate->of_response)
            return pass_empty_line(gate);
        gate->in_fields = true;
        return check_first_line(gate, line, line + len) ? H1_MORE : H1_REFUSED;
    }
    if (!len)
        return H1_DONE;
    if (++gate->fields > limits->fields)
        return refuse(&gate->fault, 431, "too many header fields");
    return check_field_line(&gate->fault, line, line + len) ? H1_MORE : H1_REFUSED;
}

/* LEN bytes were looked at, up to the end of the line that begins at line_at, or of what is there. */
static enum h1_reading check_limits(struct h1_head_gate *gate, const struct h1_limits *limits,
                                    size_t len)
{
    if (!gate->in_fields && len - gate->line_at > limits->line_bytes)
        return gate->of_response ? refuse(&gate->fault, 502, "the status line is too long")
                                 : refuse(&gate->fault, 414, "the request line is too long");
    if (len - gate->start > limits->head_bytes)
        return refuse(&gate->fault, 431, "the header section is too large");
    return H1_MORE;
}

enum h1_reading h1_gate_head(struct h1_head_gate *gate, const struct h1_limits *limits,
                             const char *bytes, size_t len)
{
    const char *end = bytes + len;

    for (;;) {
        const char     *at = chars_find_control(bytes + gate->scanned, end);
        size_t          line_at;
        enum h1_reading reading;

        gate->scanned = (uint32_t)(at - bytes);
        if (check_limits(gate, limits, gate->scanned) == H1_REFUSED)
            return H1_REFUSED; /* before anything else: a head in small pieces is no other head */
        switch (judge_line_end(&gate->fault, at, end)) {
        case END_MISSING: return H1_MORE;
        case END_BAD: return H1_REFUSED;
        case END_WELL: break;
        }
        line_at       = gate->line_at;
        gate->scanned = gate->line_at = gate->scanned + 2;
        reading = take_line(gate, limits, bytes + line_at, (size_t)(at - bytes) - line_at);
        if (reading != H1_MORE)
            return reading;
    }
}

/* --- chunks ------------------------------------------------------------------------------------------- */

void h1_chunk_init(struct h1_chunk_gate *gate)
{
    *gate = (struct h1_chunk_gate){ .state = H1_CHUNK_LINE };
}

enum { SIZE_DIGITS_MAX = 16 }; /* what 64 bits hold */

/* The digits at AT; returns where they end. */
static const char *read_size(const char *at, const char *end, uint64_t *size)
{
    *size = 0;
    while (at < end && codec_hex_digit(*at) >= 0) {
        *size = *size << 4 | (uint64_t)codec_hex_digit(*at);
        at++;
    }
    return at;
}

/* RFC 9112, 7.1.1: *( BWS ";" ... ). What an extension says is of no interest here; that it holds
 * no line end is, and has been looked at. */
static bool is_extension(const char *at, const char *end)
{
    while (at < end && *at == ' ')
        at++;
    return at < end && *at == ';';
}

static enum h1_reading take_chunk_line(struct h1_chunk_gate *gate, const char *line,
                                       const char *end)
{
    uint64_t    size;
    const char *digits_end = read_size(line, end, &size);

    if (digits_end == line || digits_end - line > SIZE_DIGITS_MAX)
        return refuse(&gate->fault, 400, "a malformed chunk size");
    if (digits_end != end && !is_extension(digits_end, end))
        return refuse(&gate->fault, 400, "a malformed chunk size");
    gate->extension += (uint32_t)(end - digits_end);
    if (gate->extension > H1_EXTENSION_BYTES_MAX)
        return refuse(&gate->fault, 400, "too many chunk extensions");
    if (size > UINT64_MAX - gate->announced - 1)
        return refuse(&gate->fault, 413, "the body is too large");
    gate->announced += size;
    gate->left    = size;
    gate->scanned = 0;
    gate->state   = size ? H1_CHUNK_DATA : H1_CHUNK_TRAILERS;
    if (!size)
        h1_gate_init_trailers(&gate->trailers);
    return H1_MORE;
}

static enum h1_reading read_line(struct h1_chunk_gate *gate, const char *bytes, size_t len,
                                 size_t *used)
{
    const char *end = bytes + len, *at = chars_find_control(bytes + gate->scanned, end);

    gate->scanned = (uint32_t)(at - bytes);
    if (gate->scanned > H1_EXTENSION_BYTES_MAX)
        return refuse(&gate->fault, 400, "too many chunk extensions");
    switch (judge_line_end(&gate->fault, at, end)) {
    case END_MISSING: return H1_MORE;
    case END_BAD: return H1_REFUSED;
    case END_WELL: break;
    }
    *used = gate->scanned + 2u;
    return take_chunk_line(gate, bytes, at);
}

static enum h1_reading read_data(struct h1_chunk_gate *gate, size_t len, size_t *used)
{
    *used = len < gate->left ? len : (size_t)gate->left;
    gate->left -= *used;
    if (!gate->left)
        gate->state = H1_CHUNK_END;
    return H1_MORE;
}

static enum h1_reading read_data_end(struct h1_chunk_gate *gate, const char *bytes, size_t len,
                                     size_t *used)
{
    if (bytes[0] != '\r' || (len > 1 && bytes[1] != '\n'))
        return refuse(&gate->fault, 400, "a chunk's data does not end in CRLF");
    if (len > 1) {
        *used       = 2;
        gate->state = H1_CHUNK_LINE;
    }
    return H1_MORE;
}

static enum h1_reading read_trailers(struct h1_chunk_gate *gate, const struct h1_limits *limits,
                                     const char *bytes, size_t len, size_t *used)
{
    enum h1_reading reading = h1_gate_head(&gate->trailers, limits, bytes, len);

    if (reading == H1_REFUSED)
        gate->fault = gate->trailers.fault;
    if (reading == H1_DONE) {
        *used       = gate->trailers.scanned;
        gate->state = H1_CHUNK_DONE;
    }
    return reading;
}

enum h1_reading h1_chunk_read(struct h1_chunk_gate *gate, const struct h1_limits *limits,
                              const char *bytes, size_t len, size_t *used)
{
    *used = 0;
    if (!len)
        return H1_MORE;
    switch (gate->state) {
    case H1_CHUNK_LINE: return read_line(gate, bytes, len, used);
    case H1_CHUNK_DATA: return read_data(gate, len, used);
    case H1_CHUNK_END: return read_data_end(gate, bytes, len, used);
    case H1_CHUNK_TRAILERS: return read_trailers(gate, limits, bytes, len, used);
    case H1_CHUNK_DONE: break;
    }
    return H1_DONE;
}
