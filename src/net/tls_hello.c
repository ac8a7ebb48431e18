#include "net/tls_hello.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

enum {
    RECORD_HEADER    = 5, /* type, version, length */
    MESSAGE_HEADER   = 4, /* type, length */
    TYPE_HANDSHAKE   = 22,
    TYPE_HELLO       = 1,
    MAJOR_VERSION    = 3,
    VERSION_BYTES    = 2,
    RANDOM_BYTES     = 32,
    EXTENSION_NAME   = 0,
    NAME_TYPE_HOST   = 0,
    EXTENSION_HEADER = 4, /* type, length */
};

/* --- numbers and lists --------------------------------------------------------------------------- */

static size_t number(const char *at, int bytes)
{
    size_t n = 0;

    for (int i = 0; i < bytes; i++)
        n = n << 8 | (uint8_t)at[i];
    return n;
}

/* Takes what a length of LEN_BYTES stands before. False: it is not all there. */
static bool take(struct str *from, int len_bytes, struct str *out)
{
    size_t len;

    if (from->len < (size_t)len_bytes)
        return false;
    len   = number(from->at, len_bytes);
    *from = str_from(*from, (size_t)len_bytes);
    if (from->len < len)
        return false;
    *out  = str_make(from->at, len);
    *from = str_from(*from, len);
    return true;
}

/* --- records ------------------------------------------------------------------------------------- */

static bool is_handshake(struct str records)
{
    size_t len = number(records.at + 3, 2);

    return records.at[0] == TYPE_HANDSHAKE && records.at[1] == MAJOR_VERSION && len > 0 &&
           len <= TLS_HELLO_BYTES_MAX;
}

/* The message's bytes so far, of which the first tell how many there will be. */
struct message {
    char   header[MESSAGE_HEADER];
    size_t len;
};

static void add(struct message *message, struct str text)
{
    for (size_t i = 0; i < text.len && message->len + i < MESSAGE_HEADER; i++)
        message->header[message->len + i] = text.at[i];
    message->len += text.len;
}

static enum tls_hello judge(const struct message *message, bool ends_record)
{
    size_t len;

    if (message->len > 0 && message->header[0] != TYPE_HELLO)
        return TLS_HELLO_OTHER;
    if (message->len < MESSAGE_HEADER)
        return TLS_HELLO_MORE;
    len = MESSAGE_HEADER + number(message->header + 1, 3);
    if (len > TLS_HELLO_BYTES_MAX || message->len > len)
        return TLS_HELLO_OTHER;
    return message->len == len && ends_record ? TLS_HELLO_WHOLE : TLS_HELLO_MORE;
}

enum tls_hello tls_hello_look(struct str records)
{
    struct message message = { .len = 0 };
    enum tls_hello found   = TLS_HELLO_MORE;
    struct str     rest    = records;

    while (found == TLS_HELLO_MORE && rest.len >= RECORD_HEADER) {
        size_t     len  = number(rest.at + 3, 2);
        struct str text = str_from(rest, RECORD_HEADER);

        if (!is_handshake(rest))
            return TLS_HELLO_OTHER;
        if (text.len > len)
            text.len = len;
        add(&message, text);
        found = judge(&message, text.len == len);
        rest  = str_from(rest, RECORD_HEADER + text.len);
    }
    if (found == TLS_HELLO_MORE && records.len > TLS_HELLO_RAW_MAX)
        return TLS_HELLO_OTHER;
    return found;
}

/* In its place: texts move towards the beginning, over the headers of the later records. */
void tls_hello_join(struct buf *records)
{
    char  *bytes   = records->at;
    size_t at      = RECORD_HEADER + number(bytes + 3, 2);
    size_t message = MESSAGE_HEADER, to = at;

    while (to < RECORD_HEADER + MESSAGE_HEADER ||
           to < RECORD_HEADER + (message = MESSAGE_HEADER + number(bytes + 6, 3))) {
        size_t len = number(bytes + at + 3, 2);

        memmove(bytes + to, bytes + at + RECORD_HEADER, len);
        to += len;
        at += RECORD_HEADER + len;
    }
    bytes[3] = (char)((to - RECORD_HEADER) >> 8);
    bytes[4] = (char)(to - RECORD_HEADER);
    memmove(bytes + to, bytes + at, records->len - at);
    records->len -= at - to;
}

/* --- the name ------------------------------------------------------------------------------------ */

static struct str first_host(struct str extension)
{
    struct str names, name;

    if (!take(&extension, 2, &names) || names.len == 0 || names.at[0] != NAME_TYPE_HOST)
        return STR_NONE;
    names = str_from(names, 1);
    return take(&names, 2, &name) ? name : STR_NONE;
}

struct str tls_hello_name(struct str records)
{
    const size_t fixed = RECORD_HEADER + MESSAGE_HEADER + VERSION_BYTES + RANDOM_BYTES;
    struct str   rest, skipped, extensions, extension;

    if (records.len < fixed)
        return STR_NONE;
    records.len = RECORD_HEADER + number(records.at + 3, 2);
    if (records.len < fixed)
        return STR_NONE;
    rest = str_from(records, fixed);
    if (!take(&rest, 1, &skipped) /* session */ || !take(&rest, 2, &skipped) /* ciphers */ ||
        !take(&rest, 1, &skipped) /* compressions */ || !take(&rest, 2, &extensions))
        return STR_NONE;
    while (extensions.len >= EXTENSION_HEADER) {
        size_t type = number(extensions.at, 2);

        extensions = str_from(extensions, 2);
        if (!take(&extensions, 2, &extension))
            return STR_NONE;
        if (type == EXTENSION_NAME)
            return first_host(extension);
    }
    return STR_NONE;
}
