#include "net/tls_hello.h"

#include "base/buf.h"
#include "base/compiler.h"
#include "support/check.h"

enum { HEADER = 5 };

/* A client's first message: this name, twice another one before it if DECOYS. */
static void add_extension(struct buf *to, const char *name)
{
    size_t len = strlen(name);

    buf_add(to, "\0\0", 2);
    buf_add_byte(to, 0);
    buf_add_byte(to, (char)(len + 5));
    buf_add_byte(to, 0);
    buf_add_byte(to, (char)(len + 3));
    buf_add_byte(to, 0);
    buf_add_byte(to, 0);
    buf_add_byte(to, (char)len);
    buf_add(to, name, len);
}

static void make_message(struct buf *to, const char *name)
{
    struct buf extensions;

    buf_init(&extensions, SIZE_MAX);
    buf_add(&extensions, "\x00\x23\x00\x03tic", 7); /* a ticket, before the name */
    if (name) {
        add_extension(&extensions, name);
        add_extension(&extensions, "second");
    }
    buf_init(to, SIZE_MAX);
    buf_add(to, "\x01\0\0", 3);
    buf_add_byte(to, (char)(2 + 32 + 1 + 2 + 2 + 2 + 1 + 1 + 2 + extensions.len));
    buf_add(to, "\x03\x03", 2);
    for (int i = 0; i < 32; i++)
        buf_add_byte(to, (char)i);
    buf_add(to, "\x02ss\x00\x02\xc0\x2b\x01\x00\x00", 10);
    buf_add_byte(to, (char)extensions.len);
    buf_add_str(to, buf_str(&extensions));
    buf_fini(&extensions);
}

static void add_record(struct buf *to, struct str text)
{
    buf_add(to, "\x16\x03\x01", 3);
    buf_add_byte(to, (char)(text.len >> 8));
    buf_add_byte(to, (char)text.len);
    buf_add_str(to, text);
}

/* In records of LEN bytes. */
static void cut(struct buf *to, const struct buf *message, size_t len)
{
    buf_init(to, SIZE_MAX);
    for (size_t at = 0; at < message->len; at += len) {
        size_t left = message->len - at;

        add_record(to, str_make(message->at + at, left < len ? left : len));
    }
}

TEST(a_message_is_whole_with_its_last_byte_however_it_is_cut)
{
    struct buf message, records;

    make_message(&message, "a.example");
    for (size_t len = 1; len <= message.len; len++) {
        cut(&records, &message, len);
        for (size_t seen = 0; seen < records.len; seen++)
            CHECK_INT(tls_hello_look(str_make(records.at, seen)), TLS_HELLO_MORE);
        CHECK_INT(tls_hello_look(buf_str(&records)), TLS_HELLO_WHOLE);
        buf_fini(&records);
    }
    buf_fini(&message);
}

TEST(it_is_joined_into_one_record_and_what_follows_stays_behind_it)
{
    struct buf message, records;

    make_message(&message, "a.example");
    for (size_t len = 1; len <= message.len; len++) {
        cut(&records, &message, len);
        buf_add(&records, "next", 4);
        tls_hello_join(&records);
        CHECK_INT(records.len, HEADER + message.len + 4);
        CHECK_INT((unsigned char)records.at[3] << 8 | (unsigned char)records.at[4], message.len);
        CHECK_MEM(records.at + HEADER, message.len, message.at, message.len);
        CHECK_MEM(records.at + HEADER + message.len, 4, "next", 4);
        buf_fini(&records);
    }
    buf_fini(&message);
}

TEST(the_first_name_is_the_one)
{
    static const char *const NAMES[] = { "a.example", "", NULL };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        struct buf message, records;
        struct str name;

        make_message(&message, NAMES[i]);
        cut(&records, &message, message.len);
        name = tls_hello_name(buf_str(&records));
        CHECK_MEM(name.len ? name.at : "", name.len, NAMES[i] ? NAMES[i] : "",
                  NAMES[i] ? strlen(NAMES[i]) : 0);
        buf_fini(&records);
        buf_fini(&message);
    }
}

/* Each byte of it may say something else, also of lengths: nothing is read behind its end. */
TEST(a_name_is_looked_for_in_what_is_there)
{
    struct buf message, records;

    make_message(&message, "a.example");
    cut(&records, &message, message.len);
    for (size_t at = HEADER; at < records.len; at++) {
        char kept = records.at[at];

        for (int bit = 0; bit < 8; bit++) {
            struct str name;

            records.at[at] = (char)(kept ^ 1 << bit);
            name           = tls_hello_name(buf_str(&records));
            CHECK(name.len == 0 ||
                  (name.at > records.at && name.at + name.len <= records.at + records.len));
        }
        records.at[at] = kept;
    }
    for (size_t len = HEADER; len < records.len; len++) {
        records.at[4] = (char)(len - HEADER);
        CHECK(tls_hello_name(str_make(records.at, len)).len <= 9);
    }
    buf_fini(&records);
    buf_fini(&message);
}

TEST(what_is_no_such_message_is_left_alone)
{
    static const struct {
        const char *bytes;
        size_t      len;
    } ROWS[] = {
        { "GET / HTTP/1.1\r\n", 16 },
        { "\x15\x03\x01\x00\x02\x01\x00", 7 },                 /* an alert */
        { "\x16\x02\x01\x00\x02\x01\x00", 7 },                 /* a version of old */
        { "\x16\x03\x01\x00\x00", 5 },                         /* nothing in it */
        { "\x16\x03\x01\x40\x01", 5 },                         /* longer than a record can be */
        { "\x16\x03\x01\x00\x01\x02", 6 },                     /* another message */
        { "\x16\x03\x01\x00\x04\x01\x00\x40\x00", 9 },         /* longer than mbedTLS takes */
        { "\x16\x03\x01\x00\x06\x01\x00\x00\x01xy", 11 },      /* more behind it in its record */
        { "\x16\x03\x01\x00\x01\x01\x17\x03\x03\x00\x01", 11 } /* other text in the middle */
    };

    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        CHECK_INT(tls_hello_look(str_make(ROWS[i].bytes, ROWS[i].len)), TLS_HELLO_OTHER);
}

TEST(many_tiny_records_end_somewhere)
{
    struct buf records;

    buf_init(&records, SIZE_MAX);
    add_record(&records, STR("\x01"));
    add_record(&records, STR("\x00"));
    add_record(&records, STR("\x30"));
    while (records.len <= TLS_HELLO_RAW_MAX) {
        CHECK_INT(tls_hello_look(buf_str(&records)), TLS_HELLO_MORE);
        for (int i = 0; i < 100; i++)
            add_record(&records, STR("x"));
    }
    CHECK_INT(tls_hello_look(buf_str(&records)), TLS_HELLO_OTHER);
    buf_fini(&records);
}

int main(void)
{
    return check_run();
}
