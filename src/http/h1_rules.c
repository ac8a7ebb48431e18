#include "http/h1_rules.h"

#include "base/arena.h"
#include "http/h1_gate.h"
#include "http/message.h"
#include "http/url.h"

static bool refused(struct h1_fault *fault, unsigned short status, const char *reason)
{
    *fault = (struct h1_fault){ status, reason };
    return false;
}

static bool is_repeated(const struct request *request, enum field_id id)
{
    return request->repeated & UINT32_C(1) << id;
}

/* --- authority ---------------------------------------------------------------------------------- */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    byte |= 0x20;
    return byte >= 'a' && byte <= 'z';
}

/* Bytes of the name or address at the beginning. The grammar of reg-name also has sub-delims and
 * escapes; no host has such a name, and they serve only to confuse who compares hosts. */
static size_t host_bytes(struct str s)
{
    size_t len = 0;

    if (s.len && s.at[0] == '[') { /* IPv6 */
        for (len = 1; len < s.len && s.at[len] != ']'; len++) {
            char byte = s.at[len];

            if (!is_digit(byte) && !((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f') && byte != ':' &&
                byte != '.')
                return 0;
        }
        return len > 1 && len < s.len ? len + 1 : 0;
    }
    while (len < s.len && (is_letter(s.at[len]) || is_digit(s.at[len]) || s.at[len] == '.' ||
                           s.at[len] == '-' || s.at[len] == '_' || s.at[len] == '~'))
        len++;
    return len;
}

bool h1_rules_is_authority(struct str s)
{
    size_t at = host_bytes(s);

    if (at == 0)
        return false;
    if (at < s.len && s.at[at++] != ':')
        return false;
    while (at < s.len && is_digit(s.at[at]))
        at++;
    return at == s.len;
}

/* RFC 9112, 3.2: one Host, in 1.1 always; more than one or a malformed one is 400 in any version.
 * An empty one is what a client without an authority must send. */
static bool check_host(struct request *request, struct h1_fault *fault)
{
    const struct field *host = request_field(request, FIELD_HOST);

    request->host = host ? host->value : STR("");
    if (!host && request->version_minor > 0)
        return refused(fault, 400, "the Host field is missing");
    if (is_repeated(request, FIELD_HOST))
        return refused(fault, 400, "more than one Host field");
    if (request->host.len && !h1_rules_is_authority(request->host))
        return refused(fault, 400, "the Host field is malformed");
    return true;
}

/* --- target --------------------------------------------------------------------------------------- */

/* Bytes of "http://" or "https://" at the beginning; 0: neither. */
static size_t scheme_bytes(struct str target)
{
    if (target.len >= 7 && str_is_nocase(str_make(target.at, 7), STR("http://")))
        return 7;
    if (target.len >= 8 && str_is_nocase(str_make(target.at, 8), STR("https://")))
        return 8;
    return 0;
}

/* RFC 9112, 3.2.2: what stands in the target counts, and the Host field is not looked at. */
static bool cut_absolute_form(struct arena *arena, struct request *request, struct h1_fault *fault)
{
    struct str rest = str_from(request->target, scheme_bytes(request->target));
    size_t     end  = 0;
    char      *target;

    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != '?')
        end++;
    request->host   = str_make(rest.at, end);
    request->target = str_from(rest, end);
    if (!h1_rules_is_authority(request->host)) /* also userinfo: RFC 9110, 4.2.4 */
        return refused(fault, 400, "the request target's authority is malformed");
    if (request->target.len && request->target.at[0] == '/')
        return true;
    target    = arena_alloc(arena, request->target.len + 1); /* an empty path is "/" */
    target[0] = '/';
    memcpy(target + 1, request->target.at, request->target.len);
    request->target = str_make(target, request->target.len + 1);
    return true;
}

static void split_query(struct request *request)
{
    size_t mark = str_find(request->target, '?');

    request->path  = str_make(request->target.at, mark);
    request->query = mark < request->target.len ? str_from(request->target, mark + 1) : STR("");
}

bool h1_rules_read_origin(struct request *request, struct h1_fault *fault)
{
    if (str_is(request->target, STR("*"))) {
        if (!str_is(request->method, STR("OPTIONS")))
            return refused(fault, 400, "\"*\" is a target for OPTIONS alone");
    } else if (!str_starts_with(request->target, STR("/"))) {
        return refused(fault, 400, "the request target has none of the four forms");
    }
    split_query(request);
    if (url_path_climbs(request->path))
        return refused(fault, 400, "the path has a segment \".\" or \"..\"");
    return true;
}

/* RFC 9112, 3.2: the four forms. Authority-form belongs to CONNECT, which is no method here. */
static bool read_target(struct arena *arena, struct request *request, struct h1_fault *fault)
{
    if (scheme_bytes(request->target) && !cut_absolute_form(arena, request, fault))
        return false;
    return h1_rules_read_origin(request, fault);
}

/* --- framing -------------------------------------------------------------------------------------- */

/* RFC 9112, 6.1: no other coding than chunked is known, none may stand twice, and 1.0 knows none. */
static bool read_transfer_encoding(struct request *request, struct h1_fault *fault)
{
    const struct field *coding = request_field(request, FIELD_TRANSFER_ENCODING);

    if (request->version_minor == 0)
        return refused(fault, 400, "Transfer-Encoding in HTTP/1.0");
    if (is_repeated(request, FIELD_TRANSFER_ENCODING))
        return refused(fault, 400, "more than one Transfer-Encoding field");
    if (!str_is_nocase(coding->value, STR("chunked")))
        return refused(fault, 501, "the transfer coding is not known");
    request->chunked = request->has_body = true;
    request->content_length              = UINT64_MAX;
    return true;
}

static bool read_content_length(struct request *request, struct h1_fault *fault)
{
    const struct field *length = request_field(request, FIELD_CONTENT_LENGTH);

    if (is_repeated(request, FIELD_CONTENT_LENGTH))
        return refused(fault, 400, "more than one Content-Length field");
    if (!str_to_u64(length->value, INT64_MAX, &request->content_length))
        return refused(fault, 400, "the Content-Length field is malformed");
    request->has_body = request->content_length > 0;
    return true;
}

/* RFC 9112, 6.3. Two framings at once is how requests are smuggled; 6.1 lets us refuse, so we do. */
static bool read_framing(struct request *request, struct h1_fault *fault)
{
    bool has_coding = request_field(request, FIELD_TRANSFER_ENCODING) != NULL;
    bool has_length = request_field(request, FIELD_CONTENT_LENGTH) != NULL;

    if (has_coding && has_length)
        return refused(fault, 400, "both Transfer-Encoding and Content-Length");
    if (has_coding)
        return read_transfer_encoding(request, fault);
    if (has_length)
        return read_content_length(request, fault);
    return true;
}

/* --- the rest --------------------------------------------------------------------------------------- */

/* RFC 9110, 10.1.1: 100-continue is the one expectation there is; 1.0 clients have none. */
static bool read_expectation(struct request *request, struct h1_fault *fault)
{
    const struct field *expect = request_field(request, FIELD_EXPECT);

    if (!expect || request->version_minor == 0)
        return true;
    if (is_repeated(request, FIELD_EXPECT) || !str_is_nocase(expect->value, STR("100-continue")))
        return refused(fault, 417, "the expectation is not known");
    request->expects_continue = request->has_body;
    return true;
}

/* RFC 9112, 9.3: close wins over keep-alive, wherever in the list they stand. RFC 9110, 7.8: who asks
 * for an upgrade names it here too, since the field is for this connection alone; 1.0 knows none. */
static void read_connection(struct request *request)
{
    const struct field *upgrade = request_field(request, FIELD_UPGRADE);
    bool                closes = false, keeps = false, upgrades = false;

    if (request_field(request, FIELD_CONNECTION)) {
        for (unsigned i = 0; i < request->field_count; i++) {
            struct str rest = request->fields[i].value, option;

            while (request->fields[i].id == FIELD_CONNECTION && str_next(&rest, ',', &option)) {
                closes |= str_is_nocase(option, STR("close"));
                keeps |= str_is_nocase(option, STR("keep-alive"));
                upgrades |= str_is_nocase(option, STR("upgrade"));
            }
        }
    }
    request->keep_alive = !closes && (request->version_minor > 0 || keeps);
    if (upgrade && upgrades && request->version_minor > 0)
        request->upgrade = upgrade->value;
}

bool h1_rules_apply(struct arena *arena, struct request *request, struct h1_fault *fault)
{
    if (str_is(request->method, STR("CONNECT")))
        return refused(fault, 501, "this server is no proxy");
    if (!check_host(request, fault) || !read_target(arena, request, fault) ||
        !read_framing(request, fault) || !read_expectation(request, fault))
        return false;
    read_connection(request);
    return true;
}
