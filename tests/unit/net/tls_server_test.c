#include "support/tls_pair.h"

#include "net/tls_side.h"

static struct tls_server *server;
static struct tls_client *client;

static void close_all(void)
{
    pair_close();
    tls_server_close(server);
    tls_client_close(client);
    server = NULL;
    client = NULL;
    pair_end();
}

/* With the suites of this list, or the usual ones. */
static void speak_1_2(struct tls_client *to, const int *suites)
{
    mbedtls_ssl_config *conf = &((struct tls_side *)(void *)to)->conf;

    if (suites)
        mbedtls_ssl_conf_ciphersuites(conf, suites);
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
    mbedtls_ssl_conf_max_tls_version(conf, MBEDTLS_SSL_VERSION_TLS1_2);
#endif
}

/* --- which certificate ---------------------------------------------------------------------------- */

static struct tls_made shop, wild, exact, rsa, user, stranger, stranger_ca, old, early;

static const char *const SHOP_NAMES[]  = { "shop.example", "www.shop.example", NULL };
static const char *const WILD_NAMES[]  = { "*.wild.example", NULL };
static const char *const EXACT_NAMES[] = { "exact.wild.example", NULL };

static void make_all(void)
{
    make_certs();
    if (shop.cert.at)
        return;
    make_cert(&shop, (struct tls_wish){ .names = SHOP_NAMES, .issuer = &authority });
    make_cert(&wild, (struct tls_wish){ .names = WILD_NAMES, .issuer = &authority });
    make_cert(&exact, (struct tls_wish){ .names = EXACT_NAMES, .issuer = &authority });
    make_cert(&rsa, (struct tls_wish){ .names = SHOP_NAMES, .issuer = &authority, .is_rsa = true });
    make_cert(&user, (struct tls_wish){ .subject = "alice", .issuer = &authority });
    make_cert(&stranger_ca, (struct tls_wish){ .subject = "strangers", .is_authority = true });
    make_cert(&stranger, (struct tls_wish){ .subject = "mallory", .issuer = &stranger_ca });
    make_cert(&old, (struct tls_wish){ .names  = SHOP_NAMES,
                                       .issuer = &authority,
                                       .from_s = 1577836800 /* 2020-01-01 */ });
    make_cert(&early, (struct tls_wish){ .names  = SHOP_NAMES,
                                         .issuer = &authority,
                                         .from_s = 4102444800 /* 2100-01-01 */ });
}

static void forget_all(void)
{
    struct tls_made *all[] = { &shop,     &wild,        &exact, &rsa,  &user,
                               &stranger, &stranger_ca, &old,   &early };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        tls_made_fini(all[i]);
    forget_certs();
}

/* shop first, as the default, and all the others. */
static void open_all(void)
{
    struct tls_identity own[4];

    make_all();
    own[0] = identity(&shop);
    own[1] = identity(&wild);
    own[2] = identity(&exact);
    own[3] = identity(&rsa);
    pair_open(0);
    server = new_server(&(struct tls_server_options){ .identities = own, .identity_count = 4 });
}

TEST(a_certificate_is_chosen_by_name)
{
    static const struct {
        const char *asked, *subject;
    } ROWS[] = {
        { "shop.example", "CN=shop.example" },
        { "www.shop.example", "CN=shop.example" },
        { "WWW.Shop.Example", "CN=shop.example" },
        { "other.wild.example", "CN=*.wild.example" },
        { "exact.wild.example", "CN=exact.wild.example" }, /* before the wildcard, that is first */
        { "a.b.wild.example", "CN=shop.example" },         /* a star is one label */
        { "wild.example", "CN=shop.example" },
        { "unknown.example", "CN=shop.example" },
        { "127.0.0.1", "CN=shop.example" }, /* no name is sent */
    };

    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        open_all();
        client = new_client(&(struct tls_client_options){ .trusts_all = true });
        shake(server, client, ROWS[i].asked, "");
        CHECK_STR(tls_fault(&theirs.stream), "");
        CHECK_STR(tls_info(&theirs.stream)->peer_subject, ROWS[i].subject);
        CHECK(str_is_nocase(str_of(tls_info(&ours.stream)->sni),
                            str_of(i == 8 ? "" : ROWS[i].asked)));
        close_all();
    }
}

/* Two for one name: the client's ciphers or signatures say which. In TLS 1.2 the cipher names the key. */
TEST(a_client_that_knows_rsa_alone_gets_the_rsa_certificate)
{
    static const int RSA_ONLY[] = { MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, 0 };

    open_all();
    client = new_client(&(struct tls_client_options){ .ca = pem(&authority.cert) });
    speak_1_2(client, RSA_ONLY);
    shake(server, client, "shop.example", "");
    CHECK_STR(tls_fault(&theirs.stream), "");
    CHECK_STR(tls_info(&theirs.stream)->cipher, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
    close_all();
}

TEST(the_first_certificate_may_be_rsa)
{
    struct tls_identity own;

    make_all();
    own = identity(&rsa);
    pair_open(0);
    server = new_server(&(struct tls_server_options){ .identities = &own, .identity_count = 1 });
    client = plain_client();
    shake(server, client, "shop.example", "");
    CHECK_STR(tls_fault(&theirs.stream), "");
    CHECK_INT(end_send(&theirs, "hello"), 5);
    RUN_UNTIL(ours.got.len == 5);
    close_all();
}

/* --- what is not spoken -------------------------------------------------------------------------------- */

static void offer_suite(int id)
{
    static int list[2];

    list[0] = id;
    pair_open(0);
    server = plain_server();
    client = plain_client();
    speak_1_2(client, list);
    shake(server, client, "a.example", "");
    CHECK_INT(tls_fault_kind(&ours.stream), TLS_BROKEN);
    CHECK_STR(tls_fault(&ours.stream), "no cipher or curve in common");
    CHECK_STR(
        tls_fault(&theirs.stream),
        "the other side breaks off: no cipher or curve in common, or a certificate of ours is "
        "missing");
    close_all();
}

TEST(old_ciphers_are_refused)
{
    offer_suite(MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA);
    offer_suite(MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384);
    offer_suite(MBEDTLS_TLS_RSA_WITH_AES_128_GCM_SHA256);
}

TEST(the_servers_order_of_ciphers_holds)
{
    static const int REVERSED[] = { MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                                    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                                    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, 0 };

    pair_open(0);
    server = plain_server();
    client = plain_client();
    speak_1_2(client, REVERSED);
    shake_well(server, client);
    CHECK_STR(tls_info(&ours.stream)->cipher, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    close_all();
}

/* --- protocols ------------------------------------------------------------------------------------------ */

static const char *agree(const char *const *servers, const char *const *clients)
{
    static char         agreed[16];
    struct tls_identity own;

    pair_open(0);
    own    = identity(&made);
    server = new_server(
        &(struct tls_server_options){ .identities = &own, .identity_count = 1, .alpn = servers });
    client =
        new_client(&(struct tls_client_options){ .ca = pem(&authority.cert), .alpn = clients });
    shake(server, client, "a.example", "");
    agreed[0] = '\0';
    if (tls_info(&ours.stream)) {
        CHECK_STR(tls_info(&ours.stream)->alpn, tls_info(&theirs.stream)->alpn);
        strcpy(agreed, tls_info(&ours.stream)->alpn);
    } else {
        CHECK(strstr(tls_fault(&ours.stream), "no protocol in common"));
        CHECK(strstr(tls_fault(&theirs.stream), "no protocol in common"));
        strcpy(agreed, "refused");
    }
    close_all();
    return agreed;
}

TEST(a_protocol_is_chosen_in_the_servers_order)
{
    static const char *const BOTH[]     = { "h2", "http/1.1", NULL };
    static const char *const REVERSED[] = { "http/1.1", "h2", NULL };
    static const char *const OLD[]      = { "http/1.1", NULL };
    static const char *const OTHER[]    = { "imap", NULL };

    CHECK_STR(agree(BOTH, REVERSED), "h2");
    CHECK_STR(agree(REVERSED, BOTH), "http/1.1");
    CHECK_STR(agree(BOTH, OLD), "http/1.1");
    CHECK_STR(agree(BOTH, NULL), "");
    CHECK_STR(agree(NULL, BOTH), "");
    CHECK_STR(agree(BOTH, OTHER), "refused");
}

/* --- tickets ---------------------------------------------------------------------------------------------- */

static struct tls_ticket_keys *keys;

static struct tls_server *ticket_server(enum tls_client_certs client_certs)
{
    struct tls_identity own = identity(&made);

    return new_server(&(struct tls_server_options){
        .identities     = &own,
        .identity_count = 1,
        .tickets        = keys,
        .client_certs   = client_certs,
        .client_ca      = pem(&authority.cert),
    });
}

/* A handshake, and a word each way: with TLS 1.3 the ticket comes with the answer. */
static bool is_resumed_at(struct tls_server *at)
{
    bool resumed;

    pair_open(0);
    shake(at, client, "a.example", "key");
    CHECK_STR(tls_fault(&ours.stream), "");
    CHECK_STR(tls_fault(&theirs.stream), "");
    CHECK_INT(end_send(&theirs, "ask"), 3);
    RUN_UNTIL(ours.got.len == 3);
    CHECK_INT(end_send(&ours, "answer"), 6);
    RUN_UNTIL(theirs.got.len == 6);
    resumed = tls_info(&ours.stream)->resumed;
    CHECK(tls_info(&theirs.stream)->resumed == resumed);
    CHECK_STR(tls_info(&ours.stream)->sni, "a.example");
    pair_close();
    return resumed;
}

static void open_tickets(void)
{
    pair_start();
    keys   = tls_ticket_keys_new(0);
    server = ticket_server(TLS_CLIENT_CERTS_NONE);
    client = plain_client();
}

static void close_tickets(void)
{
    close_all();
    tls_ticket_keys_free(keys);
}

TEST(a_ticket_is_good_at_any_server_with_the_same_keys)
{
    struct tls_server *other;

    open_tickets();
    other = ticket_server(TLS_CLIENT_CERTS_NONE);
    CHECK(!is_resumed_at(server));
    CHECK(is_resumed_at(server));
    CHECK(is_resumed_at(other));
    CHECK(is_resumed_at(other));
    tls_server_close(other);
    close_tickets();
}

TEST(a_ticket_is_good_until_its_key_was_replaced_three_times)
{
    open_tickets();
    CHECK(!is_resumed_at(server));
    tls_ticket_keys_rotate(keys);
    CHECK(is_resumed_at(server));
    tls_ticket_keys_rotate(keys);
    tls_ticket_keys_rotate(keys);
    tls_ticket_keys_rotate(keys);
    CHECK(!is_resumed_at(server));
    CHECK(is_resumed_at(server));
    close_tickets();
}

static bool is_resumed_as(const char *name)
{
    bool resumed;

    pair_open(0);
    shake(server, client, name, "key");
    CHECK_STR(tls_fault(&ours.stream), "");
    CHECK_STR(tls_fault(&theirs.stream), "");
    CHECK_STR(tls_info(&ours.stream)->sni, name);
    end_send(&ours, "and a ticket of TLS 1.3");
    RUN_UNTIL(theirs.got.len);
    resumed = tls_info(&ours.stream)->resumed;
    pair_close();
    return resumed;
}

/* RFC 6066, 3; and what a name is allowed may be the app's affair. */
TEST(a_ticket_is_good_for_the_name_it_was_made_for)
{
    struct tls_identity own;

    if (MBEDTLS_VERSION_NUMBER >= 0x03000000)
        SKIP("a client of mbedTLS 3.6 shows no ticket under another name");
    make_all();
    own = identity(&shop);
    pair_start();
    keys   = tls_ticket_keys_new(0);
    server = new_server(
        &(struct tls_server_options){ .identities = &own, .identity_count = 1, .tickets = keys });
    client = plain_client();
    CHECK(!is_resumed_as("shop.example"));
    CHECK(is_resumed_as("shop.example"));
    CHECK(!is_resumed_as("www.shop.example"));
    CHECK(is_resumed_as("www.shop.example"));
    close_tickets();
}

/* mbedTLS would choose another cipher for the old session, and clients break off. */
TEST(a_ticket_does_not_outlive_the_kind_of_the_key)
{
    struct tls_identity ec, of_rsa;
    struct tls_server  *other;

    make_all();
    ec     = identity(&shop);
    of_rsa = identity(&rsa);
    pair_start();
    keys   = tls_ticket_keys_new(0);
    server = new_server(
        &(struct tls_server_options){ .identities = &ec, .identity_count = 1, .tickets = keys });
    other  = new_server(&(struct tls_server_options){
         .identities = &of_rsa, .identity_count = 1, .tickets = keys });
    client = plain_client();
    CHECK(!is_resumed_as("shop.example"));
    tls_server_close(server);
    server = other;
    CHECK(!is_resumed_as("shop.example"));
    CHECK(is_resumed_as("shop.example"));
    close_tickets();
}

TEST(keys_of_others_open_nothing)
{
    struct tls_ticket_keys *own = NULL;
    struct tls_server      *other;

    open_tickets();
    own  = keys;
    keys = tls_ticket_keys_new(0);
    CHECK(!is_resumed_at(server));
    other = ticket_server(TLS_CLIENT_CERTS_NONE);
    CHECK(!is_resumed_at(other));
    tls_server_close(other);
    tls_ticket_keys_free(keys);
    keys = own;
    close_tickets();
}

/* A ticket from where nobody is asked would else open where a certificate must be shown. */
TEST(a_ticket_is_no_way_around_a_clients_certificate)
{
    struct tls_server *strict;

    open_tickets();
    CHECK(!is_resumed_at(server));
    strict = ticket_server(TLS_CLIENT_CERTS_REQUIRED);
    pair_open(0);
    begin(strict, client, (struct tls_target){ .name = STR("a.example"), .key = STR("key") });
    RUN_UNTIL(is_decided(&ours));
    CHECK_STR(tls_fault(&ours.stream), "the client has sent no certificate");
    pair_close();
    tls_server_close(strict);
    close_tickets();
}

/* --- certificates of clients ---------------------------------------------------------------------------------- */

static void ask(enum tls_client_certs how, const struct tls_made *shown)
{
    struct tls_identity       own;
    struct tls_client_options options = { 0 };

    make_all();
    own        = identity(&made);
    options.ca = pem(&authority.cert);
    if (shown)
        options.identity = identity(shown);
    pair_open(0);
    server = new_server(&(struct tls_server_options){ .identities     = &own,
                                                      .identity_count = 1,
                                                      .client_certs   = how,
                                                      .client_ca      = pem(&authority.cert) });
    client = new_client(&options);
    begin(server, client, (struct tls_target){ .name = STR("a.example") });
    RUN_UNTIL(is_decided(&ours));
}

TEST(a_clients_certificate_is_known_to_the_server)
{
    const struct tls_info *info;

    for (int how = TLS_CLIENT_CERTS_OPTIONAL; how <= TLS_CLIENT_CERTS_REQUIRED; how++) {
        ask((enum tls_client_certs)how, &user);
        CHECK_STR(tls_fault(&ours.stream), "");
        info = tls_info(&ours.stream);
        CHECK_STR(info->peer_subject, "CN=alice");
        CHECK_INT(strlen(info->peer_fingerprint), 64);
        CHECK(strlen(info->peer_serial) == 47 && info->peer_serial[2] == ':');
        close_all();
    }
}

TEST(one_who_need_not_show_a_certificate_may_come_without)
{
    ask(TLS_CLIENT_CERTS_OPTIONAL, NULL);
    CHECK_STR(tls_fault(&ours.stream), "");
    CHECK_STR(tls_info(&ours.stream)->peer_subject, "");
    close_all();
}

TEST(one_who_must_show_a_certificate_may_not)
{
    ask(TLS_CLIENT_CERTS_REQUIRED, NULL);
    CHECK_INT(tls_fault_kind(&ours.stream), TLS_UNTRUSTED);
    CHECK_STR(tls_fault(&ours.stream), "the client has sent no certificate");
    RUN_UNTIL(tls_fault_kind(&theirs.stream) == TLS_REFUSED);
    close_all();
}

TEST(a_strangers_certificate_is_refused_even_where_none_is_needed)
{
    for (int how = TLS_CLIENT_CERTS_OPTIONAL; how <= TLS_CLIENT_CERTS_REQUIRED; how++) {
        ask((enum tls_client_certs)how, &stranger);
        CHECK_INT(tls_fault_kind(&ours.stream), TLS_UNTRUSTED);
        CHECK_STR(tls_fault(&ours.stream), "the certificate of the client is not signed by a known "
                                           "authority: by CN=strangers");
        RUN_UNTIL(tls_fault_kind(&theirs.stream) == TLS_REFUSED);
        close_all();
    }
}

TEST(one_who_comes_back_is_still_known)
{
    struct tls_identity own;

    make_all();
    pair_start();
    own    = identity(&user);
    keys   = tls_ticket_keys_new(0);
    server = ticket_server(TLS_CLIENT_CERTS_REQUIRED);
    client =
        new_client(&(struct tls_client_options){ .ca = pem(&authority.cert), .identity = own });
    CHECK(!is_resumed_at(server));
    pair_open(0);
    shake(server, client, "a.example", "key");
    CHECK_STR(tls_info(&ours.stream)->peer_subject, "CN=alice");
    CHECK(tls_info(&ours.stream)->resumed == tls_lib_state_has_peer());
    close_tickets();
}

/* --- life ------------------------------------------------------------------------------------------------------- */

TEST(a_server_lives_until_its_last_connection)
{
    pair_open(0);
    server = plain_server();
    client = plain_client();
    shake_well(server, client);
    tls_server_close(server);
    tls_client_close(client);
    server = NULL;
    client = NULL;
    CHECK_INT(end_send(&ours, "still"), 5);
    RUN_UNTIL(theirs.got.len == 5);
    CHECK_INT(end_send(&theirs, "here"), 4);
    RUN_UNTIL(ours.got.len == 4);
    close_all();
}

TEST(a_server_that_is_replaced_in_mid_handshake_finishes_it)
{
    pair_open(0);
    server = plain_server();
    client = plain_client();
    begin(server, client, (struct tls_target){ .name = STR("a.example") });
    run_turn();
    tls_server_close(server);
    server = NULL;
    RUN_UNTIL(is_decided(&ours) && is_decided(&theirs));
    CHECK_STR(tls_fault(&ours.stream), "");
    close_all();
}

/* --- what is wrong with files -------------------------------------------------------------------------------------- */

static struct err wrong, warning;

static const char *fault_of(struct tls_identity own)
{
    struct tls_server_options options = { .identities = &own, .identity_count = 1 };
    int                       rc      = tls_server_check(&options, &warning, &wrong);

    return rc == 0 ? "" : wrong.text;
}

TEST(what_is_wrong_with_a_certificate_or_its_key_is_said)
{
    struct tls_identity own;
    struct tls_pem      text = { .text = STR("hello") };

    make_all();
    own = identity(&made);
    CHECK_STR(fault_of(own), "");
    CHECK_STR(warning.text, "");
    own.cert = text;
    CHECK_STR(fault_of(own), "the certificate given as text has no \"-----BEGIN CERTIFICATE-----\" "
                             "in it");
    own = (struct tls_identity){ .cert = pem(&made.key), .key = pem(&made.cert) };
    CHECK_STR(fault_of(own),
              "the certificate given as text is a private key: perhaps the two are swapped");
    own = (struct tls_identity){ .cert = pem(&made.cert), .key = pem(&shop.key) };
    CHECK_STR(
        fault_of(own),
        "the private key given as text does not belong to the certificate given as text: each "
        "is of another pair");
    own = (struct tls_identity){ .cert = pem(&made.cert) };
    CHECK_STR(fault_of(own), "given as text has a certificate but no private key in it");
    own      = identity(&made);
    own.cert = (struct tls_pem){ .path = "/does/not/exist.pem" };
    CHECK_STR(fault_of(own), "the certificate cannot be read: /does/not/exist.pem: No such file or "
                             "directory");
}

TEST(a_certificate_of_tomorrow_is_told_with_its_day)
{
    make_all();
    CHECK_STR(fault_of(identity(&early)), "");
    CHECK_STR(warning.text, "the certificate is not valid before 2100-01-01: is the clock right?");
}

TEST(a_chain_out_of_order_is_told)
{
    struct tls_identity own;
    struct buf          both;

    make_all();
    buf_init(&both, SIZE_MAX);
    buf_add_str(&both, buf_str(&made.cert));
    buf_add_str(&both, buf_str(&shop.cert));
    own      = identity(&made);
    own.cert = pem(&both);
    CHECK_STR(fault_of(own), "");
    CHECK_STR(warning.text,
              "the certificates do not follow each other: clients may not trust them");
    buf_fini(&both);
}

TEST(a_key_with_a_password_is_recognized)
{
    static const char   PEM[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                                "-----END ENCRYPTED PRIVATE KEY-----\n";
    struct tls_identity own;

    make_certs();
    own     = identity(&made);
    own.key = (struct tls_pem){ .text = str_of(PEM) };
    CHECK(strstr(fault_of(own), "has a password: openssl pkey -in"));
}

TEST(an_authoritys_certificate_in_front_is_recognized)
{
    struct tls_identity own;
    struct buf          both;

    make_certs();
    buf_init(&both, SIZE_MAX);
    buf_add_str(&both, buf_str(&authority.cert));
    buf_add_str(&both, buf_str(&made.cert));
    own      = identity(&made);
    own.cert = pem(&both);
    CHECK_STR(fault_of(own),
              "the server's own certificate must come first in given as text, before "
              "those of the authorities");
    buf_clear(&both);
    buf_add_str(&both, buf_str(&made.cert));
    buf_add_str(&both, buf_str(&authority.cert));
    buf_add_str(&both, buf_str(&made.key)); /* and all may stand in one */
    own = (struct tls_identity){ .cert = pem(&both) };
    CHECK_STR(fault_of(own), "");
    buf_fini(&both);
}

TEST(an_old_certificate_is_warned_of_and_used)
{
    make_all();
    CHECK_STR(fault_of(identity(&old)), "");
    CHECK_STR(warning.text, "the certificate expired on 2020-01-31: renew it");
}

TEST(who_asks_for_certificates_says_who_signs_them)
{
    struct tls_identity       own;
    struct tls_server_options options = { .identity_count = 1,
                                          .client_certs   = TLS_CLIENT_CERTS_REQUIRED };

    make_certs();
    own                = identity(&made);
    options.identities = &own;
    CHECK_INT(tls_server_check(&options, NULL, &wrong), ERR_INVALID);
    CHECK_STR(wrong.text, "certificates of clients are asked for, but not who signs them");
    options.identity_count = 0;
    CHECK_INT(tls_server_check(&options, NULL, &wrong), ERR_INVALID);
    CHECK_STR(wrong.text, "TLS needs a certificate and its private key");
}

int main(void)
{
    int rc = check_run();

    forget_all();
    return rc;
}
