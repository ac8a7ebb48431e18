#include "ws/ws_handshake.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/crypto.h"
#include "base/rand.h"
#include "http/chars.h"
#include "ws/ws_extension.h"

enum { KEY_BYTES = 16, SHA1_BYTES = 20, DEFAULT_BITS = WS_BITS_MAX };

#define NAME_KEY        STR("sec-websocket-key")
#define NAME_ACCEPT     STR("sec-websocket-accept")
#define NAME_VERSION    STR("sec-websocket-version")
#define NAME_PROTOCOL   STR("sec-websocket-protocol")
#define NAME_EXTENSIONS STR("sec-websocket-extensions")

/* RFC 6455, 4.2.2: proof that whoever answers knows WebSocket. */
#define ACCEPT_GUID STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")

static const struct str WEBSOCKET = STR_INIT("websocket");

/* --- fields, several of a name being one list ---------------------------------------------------------- */

struct fields {
    const struct field *at;
    unsigned            count;
};

static unsigned count_of(struct fields fields, struct str name)
{
    unsigned count = 0;

    for (unsigned i = 0; i < fields.count; i++)
        count += str_is(fields.at[i].name, name);
    return count;
}

/* The one of that name; empty where there is none, or more. */
static struct str only_value(struct fields fields, struct str name)
{
    if (count_of(fields, name) != 1)
        return STR_NONE;
    for (unsigned i = 0; i < fields.count; i++)
        if (str_is(fields.at[i].name, name))
            return fields.at[i].value;
    return STR_NONE;
}

static bool list_has(struct str list, struct str word)
{
    struct str element;

    while (str_next(&list, ',', &element))
        if (str_is_nocase(element, word))
            return true;
    return false;
}

static bool any_list_has(struct fields fields, struct str name, struct str word)
{
    for (unsigned i = 0; i < fields.count; i++)
        if (str_is(fields.at[i].name, name) && list_has(fields.at[i].value, word))
            return true;
    return false;
}

/* --- keys ---------------------------------------------------------------------------------------------- */

static void put_base64(char *to, size_t len, struct str bytes)
{
    struct buf text;

    memset(to, 0, len);
    buf_init(&text, len);
    codec_base64(&text, bytes, CODEC_BASE64);
    if (text.len == len)
        memcpy(to, text.at, len);
    buf_fini(&text);
}

static bool is_key(struct str key)
{
    char   bytes[WS_KEY_LEN];
    size_t len;

    return key.len == WS_KEY_LEN && codec_base64_decode(key, CODEC_BASE64, bytes, &len) &&
           len == KEY_BYTES;
}

static void make_accept(char to[WS_ACCEPT_LEN], struct str key)
{
    char       joined[WS_KEY_LEN + 36], digest[SHA1_BYTES];
    struct str guid = ACCEPT_GUID;

    memcpy(joined, key.at, WS_KEY_LEN);
    memcpy(joined + WS_KEY_LEN, guid.at, guid.len);
    crypto_digest(CRYPTO_SHA1, str_make(joined, WS_KEY_LEN + guid.len), digest);
    put_base64(to, WS_ACCEPT_LEN, str_make(digest, sizeof(digest)));
}

/* --- the server: protocols ---------------------------------------------------------------------------- */

/* Those of all fields, in order. False: one is no token, comes twice, or there are too many. */
static bool list_protocols(struct fields fields, struct str names[WS_PROTOCOLS_MAX],
                           unsigned *count)
{
    *count = 0;
    for (unsigned i = 0; i < fields.count; i++) {
        struct str rest = fields.at[i].value, name;

        if (!str_is(fields.at[i].name, NAME_PROTOCOL))
            continue;
        while (str_next(&rest, ',', &name)) {
            if (!chars_are_token(name) || *count == WS_PROTOCOLS_MAX)
                return false;
            for (unsigned k = 0; k < *count; k++)
                if (str_is(names[k], name))
                    return false;
            names[(*count)++] = name;
        }
    }
    return true;
}

static struct fields fields_of(const struct request *request)
{
    return (struct fields){ request->fields, request->field_count };
}

struct str ws_choose_protocol(const struct ws_offer *offer, const struct str *ours, size_t count)
{
    struct str names[WS_PROTOCOLS_MAX];
    unsigned   name_count;

    list_protocols(fields_of(offer->request), names, &name_count);
    for (unsigned i = 0; i < name_count; i++)
        for (size_t k = 0; k < count; k++)
            if (str_is(names[i], ours[k]))
                return names[i];
    return STR("");
}

/* --- the server: extensions ---------------------------------------------------------------------------- */

/* The first offer that can be taken. False: the grammar is broken. */
static bool take_offers(struct ws_offer *offer, struct str value)
{
    struct ws_pmd pmd;

    for (;;) {
        switch (ws_extension_next(&value, &pmd)) {
        case WS_EXTENSION_NONE: return true;
        case WS_EXTENSION_BAD: return false;
        case WS_EXTENSION_ONE: break;
        }
        if (!pmd.is_deflate || !pmd.is_sound || offer->deflate.on)
            continue;
        offer->deflate.on   = true;
        offer->deflate.bits = pmd.server_bits_given ? pmd.server_bits : DEFAULT_BITS;
        offer->names_bits   = pmd.server_bits_given;
    }
}

static bool read_extensions(struct ws_offer *offer)
{
    struct fields fields = fields_of(offer->request);

    for (unsigned i = 0; i < fields.count; i++)
        if (str_is(fields.at[i].name, NAME_EXTENSIONS) && !take_offers(offer, fields.at[i].value))
            return false;
    return true;
}

/* --- the server: the request ----------------------------------------------------------------------------- */

static unsigned refuse(struct ws_offer *offer, unsigned status, const char *reason)
{
    offer->reason = reason;
    return status;
}

/* HTTP/1.1 (RFC 6455, 4.2.1). */
static unsigned check_upgrade(struct ws_offer *offer)
{
    const struct request *request = offer->request;
    struct str            key     = only_value(fields_of(request), NAME_KEY);

    if (!list_has(request->upgrade, WEBSOCKET))
        return refuse(offer, 426, "this is a WebSocket: ask with Upgrade: websocket");
    if (!str_is(request->method, STR("GET")))
        return refuse(offer, 405, "a WebSocket is asked for by GET");
    if (!is_key(key))
        return refuse(offer, 400, "Sec-WebSocket-Key must be 16 bytes in base64");
    make_accept(offer->accept, key);
    return 0;
}

/* HTTP/2 (RFC 8441, 5): no key, for a CONNECT cannot come from a page's script. */
static unsigned check_connect(struct ws_offer *offer)
{
    if (!str_is_nocase(offer->request->upgrade, WEBSOCKET))
        return refuse(offer, 426, "this is a WebSocket: ask with :protocol websocket");
    return 0;
}

static unsigned check_version(struct ws_offer *offer)
{
    struct fields fields = fields_of(offer->request);

    if (count_of(fields, NAME_VERSION) != 1)
        return refuse(offer, 400, "Sec-WebSocket-Version must be there, once");
    if (!str_is(only_value(fields, NAME_VERSION), STR("13")))
        return refuse(offer, 426, "only version 13 of WebSocket is spoken here");
    return 0;
}

static unsigned check_lists(struct ws_offer *offer)
{
    struct str names[WS_PROTOCOLS_MAX];
    unsigned   count;

    if (!list_protocols(fields_of(offer->request), names, &count))
        return refuse(offer, 400, "Sec-WebSocket-Protocol must be a list of different names");
    if (!read_extensions(offer))
        return refuse(offer, 400, "Sec-WebSocket-Extensions is malformed");
    return 0;
}

unsigned ws_accepts(const struct request *request, struct ws_offer *offer)
{
    bool     is_http1 = request->version_major == 1;
    unsigned status;

    *offer = (struct ws_offer){ .request = request };
    status = is_http1 ? check_upgrade(offer) : check_connect(offer);
    if (status == 0 && request->has_body)
        status = refuse(offer, 400, "a WebSocket is asked for without a body");
    if (status == 0)
        status = check_version(offer);
    if (status == 0)
        status = check_lists(offer);
    return status;
}

/* --- the server: the answer -------------------------------------------------------------------------------- */

static struct str put_extension(struct ws_offer *offer)
{
    char bits[32] = "";
    int  len;

    if (offer->names_bits)
        snprintf(bits, sizeof(bits), "; server_max_window_bits=%u", offer->deflate.bits);
    len = snprintf(offer->extension, sizeof(offer->extension),
                   "permessage-deflate; server_no_context_takeover; client_no_context_takeover%s",
                   bits);
    return str_make(offer->extension, (size_t)len);
}

unsigned ws_answer_fields(struct ws_offer *offer, struct str protocol, bool deflate,
                          struct field fields[WS_ANSWER_FIELDS_MAX])
{
    unsigned count = 0;

    if (offer->request->version_major == 1)
        fields[count++] = (struct field){ STR("Sec-WebSocket-Accept"),
                                          str_make(offer->accept, WS_ACCEPT_LEN), FIELD_OTHER };
    if (protocol.len)
        fields[count++] = (struct field){ STR("Sec-WebSocket-Protocol"), protocol, FIELD_OTHER };
    offer->deflate.on = offer->deflate.on && deflate;
    if (offer->deflate.on)
        fields[count++] =
            (struct field){ STR("Sec-WebSocket-Extensions"), put_extension(offer), FIELD_OTHER };
    return count;
}

/* --- the client ------------------------------------------------------------------------------------------- */

void ws_ask_init(struct ws_ask *ask, struct str protocols, bool deflate)
{
    char nonce[KEY_BYTES];

    ask->protocols = protocols;
    ask->deflate   = deflate;
    rand_bytes(nonce, sizeof(nonce));
    put_base64(ask->key, WS_KEY_LEN, str_make(nonce, sizeof(nonce)));
}

unsigned ws_ask_fields(const struct ws_ask *ask, struct field fields[WS_ASK_FIELDS_MAX])
{
    unsigned count = 0;

    fields[count++] = (struct field){ STR("Upgrade"), WEBSOCKET, FIELD_OTHER };
    fields[count++] = (struct field){ STR("Connection"), STR("Upgrade"), FIELD_OTHER };
    fields[count++] =
        (struct field){ STR("Sec-WebSocket-Key"), str_make(ask->key, WS_KEY_LEN), FIELD_OTHER };
    fields[count++] = WS_VERSION_FIELD;
    if (ask->protocols.len)
        fields[count++] =
            (struct field){ STR("Sec-WebSocket-Protocol"), ask->protocols, FIELD_OTHER };
    if (ask->deflate)
        fields[count++] = (struct field){
            STR("Sec-WebSocket-Extensions"),
            STR("permessage-deflate; server_no_context_takeover; client_no_context_takeover"),
            FIELD_OTHER
        };
    return count;
}

static bool disagree(struct ws_agreed *agreed, const char *reason)
{
    agreed->reason = reason;
    return false;
}

static bool check_switch(const struct ws_ask *ask, struct fields fields, struct ws_agreed *agreed)
{
    char       expected[WS_ACCEPT_LEN];
    struct str accept = only_value(fields, NAME_ACCEPT);

    if (!str_is_nocase(only_value(fields, STR("upgrade")), WEBSOCKET) ||
        !any_list_has(fields, STR("connection"), STR("upgrade")))
        return disagree(agreed, "the answer does not switch to WebSocket");
    make_accept(expected, str_make(ask->key, WS_KEY_LEN));
    if (!str_is(accept, str_make(expected, WS_ACCEPT_LEN)))
        return disagree(agreed, "Sec-WebSocket-Accept does not answer our key");
    return true;
}

/* Names are compared as they are (RFC 6455, 4.1). */
static bool list_has_exactly(struct str list, struct str word)
{
    struct str element;

    while (str_next(&list, ',', &element))
        if (str_is(element, word))
            return true;
    return false;
}

static bool check_protocol(const struct ws_ask *ask, struct fields fields, struct ws_agreed *agreed)
{
    unsigned count = count_of(fields, NAME_PROTOCOL);

    agreed->protocol = only_value(fields, NAME_PROTOCOL);
    if (count > 1 || (count == 1 && (!agreed->protocol.len ||
                                     !list_has_exactly(ask->protocols, agreed->protocol))))
        return disagree(agreed, "the server chose a protocol that was not offered");
    return true;
}

/* We asked the server to carry no window on, so it must say that it does not; client_max_window_bits
 * we did not offer. */
static bool is_as_asked(const struct ws_pmd *pmd)
{
    return pmd->is_deflate && pmd->is_sound && pmd->server_alone && !pmd->client_bits_given;
}

static bool take_answered(const struct ws_ask *ask, struct str value, struct ws_agreed *agreed)
{
    struct ws_pmd pmd;

    for (;;) {
        switch (ws_extension_next(&value, &pmd)) {
        case WS_EXTENSION_NONE: return true;
        case WS_EXTENSION_BAD: return false;
        case WS_EXTENSION_ONE: break;
        }
        if (!ask->deflate || agreed->deflate.on || !is_as_asked(&pmd))
            return false;
        agreed->deflate = (struct ws_deflate){ true, DEFAULT_BITS };
    }
}

static bool check_extensions(const struct ws_ask *ask, struct fields fields,
                             struct ws_agreed *agreed)
{
    for (unsigned i = 0; i < fields.count; i++)
        if (str_is(fields.at[i].name, NAME_EXTENSIONS) &&
            !take_answered(ask, fields.at[i].value, agreed))
            return disagree(agreed, "the server uses an extension that was not offered so");
    return true;
}

bool ws_check_answer(const struct ws_ask *ask, unsigned status, const struct field *fields,
                     unsigned count, struct ws_agreed *agreed)
{
    struct fields all = { fields, count };

    *agreed = (struct ws_agreed){ .protocol = STR_NONE };
    if (status != 101)
        return disagree(agreed, "the server does not switch to WebSocket");
    return check_switch(ask, all, agreed) && check_protocol(ask, all, agreed) &&
           check_extensions(ask, all, agreed);
}
