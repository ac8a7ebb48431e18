#include "support/tls_pair.h"

#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>

#include "base/crypto.h"
#include "net/tls_side.h"

static struct tls_server *server;
static struct tls_client *client;

static struct tls_made self_signed, old, early, stranger_ca, stranger, user;

static const char *const NAMES[] = { "a.example", "*.b.example", "127.0.0.1", "::1", NULL };

static void make_all(void)
{
    make_certs();
    if (old.cert.at)
        return;
    make_cert(&self_signed, (struct tls_wish){ .names = NAMES });
    make_cert(&old, (struct tls_wish){ .names  = NAMES,
                                       .issuer = &authority,
                                       .from_s = 1577836800 /* 2020-01-01 */ });
    make_cert(&early, (struct tls_wish){ .names  = NAMES,
                                         .issuer = &authority,
                                         .from_s = 4070908800 /* 2099-01-01 */ });
    make_cert(&stranger_ca, (struct tls_wish){ .subject = "strangers", .is_authority = true });
    make_cert(&stranger, (struct tls_wish){ .names = NAMES, .issuer = &stranger_ca });
    make_cert(&user, (struct tls_wish){ .names = NAMES, .issuer = &authority });
}

static void forget_all(void)
{
    struct tls_made *all[] = { &self_signed, &old, &early, &stranger_ca, &stranger, &user };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        tls_made_fini(all[i]);
    forget_certs();
}

static void close_all(void)
{
    pair_close();
    tls_server_close(server);
    tls_client_close(client);
    server = NULL;
    client = NULL;
    pair_end();
}

/* A client with OPTIONS meets a server that has CERT; what the client says of it. */
static const char *meet(const struct tls_made *cert, const char *name,
                        const struct tls_client_options *options)
{
    static char         said[1024];
    struct tls_identity own = identity(cert);

    pair_open(0);
    server = new_server(&(struct tls_server_options){ .identities = &own, .identity_count = 1 });
    client = new_client(options);
    begin(server, client, (struct tls_target){ .name = str_of(name) });
    RUN_UNTIL(is_decided(&theirs));
    snprintf(said, sizeof(said), "%s", tls_fault(&theirs.stream));
    if (said[0]) {
        CHECK(tls_fault_kind(&theirs.stream) == TLS_UNTRUSTED);
        RUN_UNTIL(is_decided(&ours) || ours.last == STREAM_FIN || ours.last == STREAM_FAIL);
    }
    close_all();
    return said;
}

static const char *verify(const struct tls_made *cert, const char *name)
{
    make_all();
    return meet(cert, name, &(struct tls_client_options){ .ca = pem(&authority.cert) });
}

/* --- verification ----------------------------------------------------------------------------------- */

TEST(the_certificate_must_be_for_the_name)
{
    CHECK_STR(verify(&user, "a.example"), "");
    CHECK_STR(verify(&user, "A.Example."), "");
    CHECK_STR(verify(&user, "x.b.example"), "");
    CHECK_STR(verify(&user, "b.example"),
              "the certificate of b.example is for a.example, *.b.example, 127.0.0.1, ::1");
    CHECK_STR(verify(&user, "x.y.b.example"),
              "the certificate of x.y.b.example is for a.example, *.b.example, 127.0.0.1, ::1");
}

/* It would be for all who have a name below it. */
TEST(a_star_before_the_last_label_alone_is_nobodys)
{
    static const char *const ALL[] = { "*.example", NULL };
    struct tls_made          all;

    make_all();
    make_cert(&all, (struct tls_wish){ .names = ALL, .issuer = &authority });
    CHECK_STR(verify(&all, "a.example"), "the certificate of a.example is for *.example");
    tls_made_fini(&all);
}

TEST(an_address_must_stand_in_the_certificate)
{
    CHECK_STR(verify(&user, "127.0.0.1"), "");
    CHECK_STR(verify(&user, "::1"), "");
    CHECK_STR(verify(&user, "0:0:0:0:0:0:0:1"), "");
    CHECK_STR(verify(&user, "127.0.0.2"),
              "the certificate of 127.0.0.2 is for a.example, *.b.example, 127.0.0.1, ::1");
    CHECK_STR(verify(&user, "::2"),
              "the certificate of ::2 is for a.example, *.b.example, 127.0.0.1, ::1");
}

TEST(a_certificate_is_refused_out_of_its_time)
{
    CHECK_STR(verify(&old, "a.example"), "the certificate of a.example expired on 2020-01-31");
    CHECK_STR(verify(&early, "a.example"), "the certificate of a.example is valid from 2099-01-01 "
                                           "only: is the clock right?");
}

TEST(who_signed_it_must_be_known)
{
    CHECK_STR(verify(&self_signed, "a.example"),
              "the certificate of a.example is signed by itself, "
              "not by a known authority");
    CHECK_STR(verify(&stranger, "a.example"),
              "the certificate of a.example is not signed by a known "
              "authority: by CN=strangers");
}

TEST(a_certificate_that_is_trusted_itself_needs_no_authority)
{
    make_all();
    CHECK_STR(meet(&self_signed, "a.example",
                   &(struct tls_client_options){ .ca = pem(&self_signed.cert) }),
              "");
}

TEST(who_trusts_all_takes_any)
{
    struct tls_client_options options = { .trusts_all = true };

    make_all();
    CHECK_STR(meet(&self_signed, "c.example", &options), "");
    CHECK_STR(meet(&old, "10.0.0.1", &options), "");
}

/* A client of mbedTLS 3.6 says so before it has changed keys, so that nobody can read it. */
TEST(the_server_hears_why_it_is_refused)
{
    struct tls_identity own;

    make_all();
    own = identity(&stranger);
    pair_open(0);
    server = new_server(&(struct tls_server_options){ .identities = &own, .identity_count = 1 });
    client = plain_client();
    shake(server, client, "a.example", "");
    CHECK(tls_fault(&ours.stream)[0]);
    if (MBEDTLS_VERSION_NUMBER < 0x03000000)
        CHECK_STR(tls_fault(&ours.stream),
                  "the other side breaks off: it does not know who signed our certificate");
    close_all();
}

/* --- the system's roots ------------------------------------------------------------------------------------ */

static void write_file(const char *path, struct str text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fwrite(text.at, 1, text.len, file) == text.len);
    fclose(file);
}

TEST(the_systems_roots_are_those_of_SSL_CERT_FILE)
{
    char  path[] = "/tmp/tls_client_test.XXXXXX";
    int   fd     = mkstemp(path);
    char *before = getenv("SSL_CERT_FILE");

    make_all();
    close(fd);
    write_file(path, buf_str(&authority.cert));
    setenv("SSL_CERT_FILE", path, 1);
    CHECK_STR(meet(&user, "a.example", &(struct tls_client_options){ 0 }), "");
    unlink(path);

    pair_open(0);
    client = new_client(&(struct tls_client_options){ 0 });
    CHECK_INT(tls_connect(&theirs.stream, client, &(struct tls_target){ .name = STR("a.example") },
                          &pair_err),
              ERR_NOT_FOUND);
    CHECK(strstr(pair_err.text, "SSL_CERT_FILE"));
    CHECK(!theirs.stream.tls); /* plain still */
    close_all();
    if (before)
        setenv("SSL_CERT_FILE", before, 1);
    else
        unsetenv("SSL_CERT_FILE");
}

/* --- pins ------------------------------------------------------------------------------------------------------ */

static void pin_of(const struct tls_made *cert, uint8_t *pin)
{
    mbedtls_x509_crt crt;
    struct buf       text;

    buf_init(&text, SIZE_MAX);
    buf_add_str(&text, buf_str(&cert->cert));
    buf_add_byte(&text, '\0');
    mbedtls_x509_crt_init(&crt);
    CHECK_INT(mbedtls_x509_crt_parse(&crt, (unsigned char *)text.at, text.len), 0);
    crypto_digest(CRYPTO_SHA256, str_make((char *)crt.pk_raw.p, crt.pk_raw.len), pin);
    mbedtls_x509_crt_free(&crt);
    buf_fini(&text);
}

TEST(a_pinned_key_must_be_the_servers_or_its_authoritys)
{
    uint8_t                   pins[2][TLS_PIN_BYTES];
    struct tls_client_options options;

    make_all();
    options =
        (struct tls_client_options){ .ca = pem(&authority.cert), .pins = pins, .pin_count = 2 };
    pin_of(&user, pins[1]);
    pin_of(&old, pins[0]);
    CHECK_STR(meet(&user, "a.example", &options), "");
    pin_of(&authority, pins[1]);
    CHECK_STR(meet(&user, "a.example", &options), "");
    pin_of(&stranger, pins[1]);
    CHECK(strstr(meet(&user, "a.example", &options),
                 "the key of a.example is none of those that are pinned: it is sha256/"));
}

/* An authority's certificate can be shown by anyone. */
TEST(without_verification_the_servers_own_key_alone_counts)
{
    uint8_t                   pins[1][TLS_PIN_BYTES];
    struct tls_client_options options = { .trusts_all = true, .pins = pins, .pin_count = 1 };

    make_all();
    pin_of(&self_signed, pins[0]);
    CHECK_STR(meet(&self_signed, "a.example", &options), "");
    CHECK(strstr(meet(&user, "a.example", &options), "none of those that are pinned"));
    pin_of(&authority, pins[0]);
    CHECK(strstr(meet(&user, "a.example", &options), "none of those that are pinned"));
}

/* --- sessions ----------------------------------------------------------------------------------------------- */

static struct tls_ticket_keys *keys;

static bool is_resumed_under(const char *key)
{
    bool resumed;

    pair_open(0);
    shake(server, client, "a.example", key);
    CHECK_STR(tls_fault(&theirs.stream), "");
    CHECK_INT(end_send(&theirs, "ask"), 3);
    RUN_UNTIL(ours.got.len == 3);
    CHECK_INT(end_send(&ours, "answer"), 6);
    RUN_UNTIL(theirs.got.len == 6);
    resumed = tls_info(&theirs.stream)->resumed;
    pair_close();
    return resumed;
}

static void open_sessions(struct tls_client_options options)
{
    struct tls_identity own;

    make_all();
    pair_start();
    own        = identity(&user);
    keys       = tls_ticket_keys_new(0);
    options.ca = pem(&authority.cert);
    server     = new_server(
            &(struct tls_server_options){ .identities = &own, .identity_count = 1, .tickets = keys });
    client = new_client(&options);
}

static void close_sessions(void)
{
    close_all();
    tls_ticket_keys_free(keys);
}

TEST(a_session_is_taken_up_again_under_its_key_alone)
{
    open_sessions((struct tls_client_options){ 0 });
    CHECK(!is_resumed_under("one"));
    CHECK(!is_resumed_under("two"));
    CHECK(is_resumed_under("one"));
    CHECK(is_resumed_under("two"));
    CHECK(!is_resumed_under(""));
    CHECK(!is_resumed_under(""));
    close_sessions();
}

/* In TLS 1.3 they come one behind the other, in one packet, before anything was said. */
TEST(several_tickets_are_in_nobodys_way)
{
    open_sessions((struct tls_client_options){ 0 });
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
    mbedtls_ssl_conf_new_session_tickets(&((struct tls_side *)(void *)server)->conf, 3);
#endif
    CHECK(!is_resumed_under("one"));
    CHECK(is_resumed_under("one"));
    pair_open(0);
    theirs.reads = false;
    shake(server, client, "a.example", "two");
    run_for_ms(5);
    end_read(&theirs);
    CHECK_INT(theirs.last, STREAM_WAIT);
    CHECK_INT(end_send(&theirs, "ask"), 3);
    RUN_UNTIL(ours.got.len == 3);
    close_sessions();
}

#if MBEDTLS_VERSION_NUMBER >= 0x03000000

/* Else who steals a ticket's key could read what was said. */
TEST(without_a_fresh_exchange_of_keys_no_session_is_taken_up)
{
    open_sessions((struct tls_client_options){ 0 });
    CHECK(!is_resumed_under("one"));
    mbedtls_ssl_conf_tls13_key_exchange_modes(&((struct tls_side *)(void *)client)->conf,
                                              MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK);
    pair_open(0);
    begin(server, client, (struct tls_target){ .name = STR("a.example"), .key = STR("one") });
    RUN_UNTIL(is_decided(&ours));
    CHECK(!tls_info(&ours.stream));
    close_sessions();
}

#endif

TEST(the_least_used_session_makes_room)
{
    open_sessions((struct tls_client_options){ .sessions = 2 });
    CHECK(!is_resumed_under("one"));
    CHECK(!is_resumed_under("two"));
    CHECK(is_resumed_under("one"));
    CHECK(!is_resumed_under("three"));
    CHECK(is_resumed_under("one"));
    CHECK(!is_resumed_under("two"));
    close_sessions();
}

TEST(a_session_that_was_pinned_is_taken_up_again)
{
    uint8_t pins[1][TLS_PIN_BYTES];

    make_all();
    pin_of(&user, pins[0]);
    open_sessions((struct tls_client_options){ .pins = pins, .pin_count = 1 });
    CHECK(!is_resumed_under("one"));
    CHECK(is_resumed_under("one"));
    close_sessions();
}

TEST(a_name_that_is_none_is_refused)
{
    struct tls_target targets[] = { { .name = STR("") },
                                    { .name = STR(".") },
                                    { .name = STR("a\0b") } };

    pair_open(0);
    client = plain_client();
    for (size_t i = 0; i < ARRAY_LEN(targets); i++)
        CHECK_INT(tls_connect(&theirs.stream, client, &targets[i], &pair_err), ERR_INVALID);
    close_all();
}

int main(void)
{
    int rc = check_run();

    forget_all();
    return rc;
}
