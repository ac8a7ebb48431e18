#include "ws/ws_handshake.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "support/check.h"

/* --- requests ---------------------------------------------------------------------------------------- */

enum { FIELDS_MAX = 64 };

static struct field    fields[FIELDS_MAX];
static struct request  request;
static struct ws_offer offer;

static void add(const char *name, const char *value)
{
    fields[request.field_count++] = (struct field){ str_of(name), str_of(value), FIELD_OTHER };
}

/* The request of RFC 6455, 1.3, without KEY or VERSION where they are NULL. */
static void ask(const char *key, const char *version)
{
    request = (struct request){ .method        = STR("GET"),
                                .upgrade       = STR("websocket"),
                                .version_major = 1,
                                .version_minor = 1,
                                .fields        = fields };
    if (key)
        add("sec-websocket-key", key);
    if (version)
        add("sec-websocket-version", version);
}

static const char KEY[] = "dGhlIHNhbXBsZSBub25jZQ==";

static unsigned verdict(void)
{
    unsigned status = ws_accepts(&request, &offer);

    if (status && !offer.reason)
        abort();
    return status;
}

static unsigned verdict_with(const char *name, const char *value)
{
    ask(KEY, "13");
    add(name, value);
    return verdict();
}

TEST(the_example_of_the_rfc_is_accepted_with_its_key)
{
    ask(KEY, "13");
    CHECK_INT(verdict(), 0);
    CHECK_MEM(offer.accept, WS_ACCEPT_LEN, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 28);
    CHECK(!offer.deflate.on);
}

TEST(upgrade_may_be_a_list_in_any_case)
{
    ask(KEY, "13");
    request.upgrade = STR("h3, WebSocket");
    CHECK_INT(verdict(), 0);
    request.upgrade = STR("websocket2");
    CHECK_INT(verdict(), 426);
    request.upgrade = STR("");
    CHECK_INT(verdict(), 426);
}

TEST(keys_are_sixteen_bytes_once)
{
    static const char *const BAD[] = { NULL,
                                       "",
                                       "c2hvcnQ=",
                                       "!!!!!!!!!!!!!!!!!!!!!!==",
                                       "dGhlIHNhbXBsZSBub25jZQ=",
                                       "dGhlIHNhbXBsZSBub25jZQ",
                                       "dGhlIHNhbXBsZSBub25jZTEy",
                                       "dGhlIHNhbXBsZSBub25jZTE=",
                                       "dGhlIHNhbXBsZSBub25jZQ== " };

    for (unsigned i = 0; i < ARRAY_LEN(BAD); i++) {
        ask(BAD[i], "13");
        CHECK_INT(verdict(), 400);
    }
    CHECK_INT(verdict_with("sec-websocket-key", KEY), 400);
}

TEST(versions_are_13_once)
{
    ask(KEY, NULL);
    CHECK_INT(verdict(), 400);
    ask(KEY, "12");
    CHECK_INT(verdict(), 426);
    ask(KEY, "13, 8");
    CHECK_INT(verdict(), 426);
    ask(KEY, "013");
    CHECK_INT(verdict(), 426);
    CHECK_INT(verdict_with("sec-websocket-version", "13"), 400);
}

TEST(other_methods_and_bodies_are_refused)
{
    ask(KEY, "13");
    request.method = STR("POST");
    CHECK_INT(verdict(), 405);
    ask(KEY, "13");
    request.has_body = true;
    CHECK_INT(verdict(), 400);
}

TEST(http2_needs_no_key)
{
    struct field answer[WS_ANSWER_FIELDS_MAX];

    ask(NULL, "13");
    request.method        = STR("CONNECT");
    request.version_major = 2;
    CHECK_INT(verdict(), 0);
    CHECK_INT(ws_answer_fields(&offer, STR(""), true, answer), 0);
    request.upgrade = STR("connect-udp");
    CHECK_INT(verdict(), 426);
}

/* An open stream is none: only who announces a length has one. */
TEST(http2_has_no_body_either)
{
    ask(NULL, "13");
    request.version_major = 2;
    request.has_body      = true;
    CHECK_INT(verdict(), 400);
}

/* --- protocols ------------------------------------------------------------------------------------------ */

static const struct str OURS[] = { STR_INIT("chat"), STR_INIT("superchat") };

TEST(the_first_of_the_clients_protocols_that_is_ours_is_chosen)
{
    ask(KEY, "13");
    add("sec-websocket-protocol", "x, superchat");
    add("sec-websocket-protocol", "chat");
    CHECK_INT(verdict(), 0);
    CHECK(str_is(ws_choose_protocol(&offer, OURS, 2), STR("superchat")));
    CHECK(str_is(ws_choose_protocol(&offer, OURS, 1), STR("chat")));
    CHECK_INT(ws_choose_protocol(&offer, OURS, 0).len, 0);
    CHECK_INT(verdict_with("sec-websocket-protocol", "CHAT"), 0);
    CHECK_INT(ws_choose_protocol(&offer, OURS, 2).len, 0);
}

TEST(malformed_protocols_are_refused)
{
    char     many[200] = "";
    unsigned len       = 0;

    CHECK_INT(verdict_with("sec-websocket-protocol", "a b"), 400);
    CHECK_INT(verdict_with("sec-websocket-protocol", "a,,b"), 400);
    CHECK_INT(verdict_with("sec-websocket-protocol", "a,b,a"), 400);
    CHECK_INT(verdict_with("sec-websocket-protocol", "\"a\""), 400);
    for (unsigned i = 0; i < WS_PROTOCOLS_MAX; i++)
        len += (unsigned)snprintf(many + len, sizeof(many) - len, "p%u,", i);
    CHECK_INT(verdict_with("sec-websocket-protocol", many), 0);
    snprintf(many + len, sizeof(many) - len, "q");
    CHECK_INT(verdict_with("sec-websocket-protocol", many), 400);
}

/* --- extensions -------------------------------------------------------------------------------------------- */

struct deflate_case {
    const char *value;
    unsigned    status;
    bool        on;
    unsigned    bits;
    const char *answered; /* behind what is always said */
};

TEST(offers_of_deflate_are_taken_or_declined)
{
    static const struct deflate_case CASES[] = {
        { "permessage-deflate", 0, true, 15, "" },
        { "Permessage-Deflate ; Client_max_window_bits", 0, true, 15, "" },
        { "permessage-deflate; client_max_window_bits=10", 0, true, 15, "" },
        { "permessage-deflate; client_max_window_bits=\"10\"", 0, true, 15, "" },
        { "permessage-deflate; server_max_window_bits=10", 0, true, 10,
          "; server_max_window_bits=10" },
        { "permessage-deflate; server_max_window_bits=8", 0, true, 8,
          "; server_max_window_bits=8" },
        { "permessage-deflate;server_no_context_takeover;client_no_context_takeover", 0, true, 15,
          "" },
        { "x-other; a=1; b=\"c\", permessage-deflate", 0, true, 15, "" },
        { ", permessage-deflate,", 0, true, 15, "" },
        { "permessage-deflate; server_max_window_bits=7, permessage-deflate", 0, true, 15, "" },
        { "x-other", 0, false, 0, "" },
        { "permessage-deflate; server_max_window_bits=7", 0, false, 0, "" },
        { "permessage-deflate; server_max_window_bits=16", 0, false, 0, "" },
        { "permessage-deflate; server_max_window_bits=010", 0, false, 0, "" },
        { "permessage-deflate; server_max_window_bits", 0, false, 0, "" },
        { "permessage-deflate; client_max_window_bits=x", 0, false, 0, "" },
        { "permessage-deflate; client_max_window_bits; client_max_window_bits", 0, false, 0, "" },
        { "permessage-deflate; server_no_context_takeover=1", 0, false, 0, "" },
        { "permessage-deflate; client_no_context_takeover; client_no_context_takeover", 0, false, 0,
          "" },
        { "permessage-deflate; unknown", 0, false, 0, "" },
        { "permessage-deflate;", 400, false, 0, "" },
        { "permessage-deflate; =1", 400, false, 0, "" },
        { "permessage-deflate; a=", 400, false, 0, "" },
        { "permessage-deflate; a=\"\"", 400, false, 0, "" },
        { "permessage-deflate; a=\"b", 400, false, 0, "" },
        { "permessage-deflate; a=\"b c\"", 400, false, 0, "" },
        { "permessage-deflate a", 400, false, 0, "" },
        { "; a", 400, false, 0, "" },
    };

    for (unsigned i = 0; i < ARRAY_LEN(CASES); i++) {
        const struct deflate_case *one = &CASES[i];
        struct field               answer[WS_ANSWER_FIELDS_MAX];
        char                       expected[200];

        CHECK_INT(verdict_with("sec-websocket-extensions", one->value), one->status);
        if (one->status)
            continue;
        CHECK_INT(offer.deflate.on, one->on);
        CHECK_INT(ws_answer_fields(&offer, STR(""), true, answer), one->on ? 2 : 1);
        if (!one->on)
            continue;
        CHECK_INT(offer.deflate.bits, one->bits);
        snprintf(expected, sizeof(expected),
                 "permessage-deflate; server_no_context_takeover; client_no_context_takeover%s",
                 one->answered);
        CHECK_MEM(answer[1].value.at, answer[1].value.len, expected, strlen(expected));
    }
}

TEST(the_answer_says_what_was_chosen_alone)
{
    struct field answer[WS_ANSWER_FIELDS_MAX];

    CHECK_INT(verdict_with("sec-websocket-extensions", "permessage-deflate"), 0);
    CHECK_INT(ws_answer_fields(&offer, STR("chat"), false, answer), 2);
    CHECK(!offer.deflate.on);
    CHECK(str_is(answer[0].name, STR("Sec-WebSocket-Accept")));
    CHECK(str_is(answer[1].name, STR("Sec-WebSocket-Protocol")));
    CHECK(str_is(answer[1].value, STR("chat")));
}

/* --- the client's side ------------------------------------------------------------------------------------- */

static struct ws_ask    question;
static struct ws_agreed agreed;
static struct ws_offer  theirs;
static struct field     answered[8];
static unsigned         answered_count;

/* Our own server's answer, with names in lower case. */
static void ask_our_server(struct str protocols, bool deflate)
{
    static char  names[WS_ANSWER_FIELDS_MAX][40];
    struct field asked[WS_ASK_FIELDS_MAX];
    unsigned     count;

    ws_ask_init(&question, protocols, deflate);
    count = ws_ask_fields(&question, asked);
    ask(NULL, NULL);
    for (unsigned i = 2; i < count; i++) {
        static const char *const NAMES[] = { "sec-websocket-key", "sec-websocket-version",
                                             "sec-websocket-protocol", "sec-websocket-extensions" };
        unsigned                 name    = i - 2 + (i == 4 && !protocols.len);

        CHECK(str_is_nocase(asked[i].name, str_of(NAMES[name])));
        fields[request.field_count++] =
            (struct field){ str_of(NAMES[name]), asked[i].value, FIELD_OTHER };
    }
    CHECK_INT(ws_accepts(&request, &theirs), 0);
    answered_count =
        ws_answer_fields(&theirs, ws_choose_protocol(&theirs, OURS, 2), true, answered);
    for (unsigned i = 0; i < answered_count; i++) {
        for (size_t k = 0; k < answered[i].name.len; k++)
            names[i][k] = (char)(answered[i].name.at[k] | 0x20);
        answered[i].name = str_make(names[i], answered[i].name.len);
    }
    answered[answered_count++] = (struct field){ STR("upgrade"), STR("WebSocket"), FIELD_OTHER };
    answered[answered_count++] =
        (struct field){ STR("connection"), STR("keep-alive, Upgrade"), FIELD_OTHER };
}

static bool agrees(void)
{
    bool yes = ws_check_answer(&question, 101, answered, answered_count, &agreed);

    if (!yes && !agreed.reason)
        abort();
    return yes;
}

static struct field *answer_named(const char *name)
{
    for (unsigned i = 0; i < answered_count; i++)
        if (str_is(answered[i].name, str_of(name)))
            return &answered[i];
    abort();
}

TEST(both_our_sides_agree)
{
    ask_our_server(STR("superchat, chat"), true);
    CHECK(agrees());
    CHECK(str_is(agreed.protocol, STR("superchat")));
    CHECK(agreed.deflate.on);
    ask_our_server(STR(""), false);
    CHECK(agrees());
    CHECK_INT(agreed.protocol.len, 0);
    CHECK(!agreed.deflate.on);
}

TEST(keys_differ)
{
    struct ws_ask other;

    ws_ask_init(&question, STR(""), false);
    ws_ask_init(&other, STR(""), false);
    CHECK(memcmp(question.key, other.key, WS_KEY_LEN) != 0);
}

TEST(answers_that_do_not_switch_are_refused)
{
    ask_our_server(STR(""), false);
    CHECK(!ws_check_answer(&question, 200, answered, answered_count, &agreed));
    answer_named("upgrade")->value = STR("h2c");
    CHECK(!agrees());
    ask_our_server(STR(""), false);
    answer_named("connection")->value = STR("close");
    CHECK(!agrees());
    ask_our_server(STR(""), false);
    answer_named("sec-websocket-accept")->value = STR("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    CHECK(!agrees());
}

TEST(protocols_that_were_not_offered_are_refused)
{
    ask_our_server(STR("chat"), false);
    answer_named("sec-websocket-protocol")->value = STR("superchat");
    CHECK(!agrees());
    ask_our_server(STR("chat"), false);
    answered[answered_count++] = *answer_named("sec-websocket-protocol");
    CHECK(!agrees());
}

TEST(extensions_that_were_not_offered_so_are_refused)
{
    static const char *const BAD[] = {
        "x-other",
        "permessage-deflate",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=10",
        "permessage-deflate; server_no_context_takeover; unknown",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_no_context_takeover, permessage-deflate; "
        "server_no_context_takeover",
        "permessage-deflate; server_no_context_takeover;",
    };

    for (unsigned i = 0; i < ARRAY_LEN(BAD); i++) {
        ask_our_server(STR(""), true);
        answer_named("sec-websocket-extensions")->value = str_of(BAD[i]);
        CHECK(!agrees());
    }
    ask_our_server(STR(""), true);
    answer_named("sec-websocket-extensions")->value =
        STR("permessage-deflate; server_no_context_takeover; server_max_window_bits=9");
    CHECK(agrees());
    question.deflate = false;
    CHECK(!agrees());
}

int main(void)
{
    return check_run();
}
