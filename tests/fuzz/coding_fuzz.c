/* links: srv_base
 *
 * The first byte tells the coding and how the rest is cut: however bytes come and however much room
 * there is, the same text comes out and ends the same way, each step keeps its word, and no step goes
 * on for ever. What a writer makes of the bytes, flushed or not, is read as the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/brotli.h"
#include "base/coding.h"
#include "base/deflate.h"
#include "base/zstd.h"

enum { TEXT_BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct outcome {
    char             text[TEXT_BYTES_MAX];
    size_t           len, unread;
    enum coding_step step;
};

static void must(bool claim)
{
    if (!claim)
        abort();
}

/* One step over at most CUT bytes from *AT on, with room for ROOM. */
static void step(struct coding *coding, struct str all, size_t *at, size_t cut, size_t room,
                 struct outcome *to)
{
    size_t     left = all.len - *at, offered = left < cut ? left : cut, made = 0;
    struct str in = str_make(all.at + *at, offered);

    if (room > sizeof(to->text) - to->len)
        room = sizeof(to->text) - to->len;
    to->step = coding_run(coding, &in, offered == left, to->text + to->len, room, &made);
    must(made <= room && in.len <= offered);
    must(to->step != CODING_MORE || in.len == 0);
    must(to->step != CODING_FULL || made == room);
    must(to->step != CODING_MORE || offered < left);
    to->len += made;
    *at += offered - in.len;
}

/* Ends where the coded data does, or where the text is as long as we look at. */
static void decode(struct coding *coding, struct str all, size_t cut, size_t room,
                   struct outcome *to)
{
    size_t at = 0;

    if (!coding)
        return;
    to->len = 0;
    do
        step(coding, all, &at, cut, room, to);
    while (to->len < sizeof(to->text) && (to->step == CODING_MORE || to->step == CODING_FULL));
    to->unread = all.len - at;
    coding_free(coding);
}

static void read_twice(struct coding *(*make)(void), struct str all, uint8_t how)
{
    static struct outcome whole, cut;

    decode(make(), all, all.len + 1, TEXT_BYTES_MAX, &whole);
    decode(make(), all, 1 + (how >> 1 & 7), 1 + (how >> 4), &cut);
    if (whole.len == TEXT_BYTES_MAX || cut.len == TEXT_BYTES_MAX)
        return;
    must(whole.step == cut.step);
    must(whole.step != CODING_DONE || (whole.len == cut.len && whole.unread == cut.unread &&
                                       memcmp(whole.text, cut.text, cut.len) == 0));
}

static void flush(struct coding *coding, size_t room, struct outcome *to)
{
    size_t made;

    do {
        must(room <= sizeof(to->text) - to->len);
        to->step = coding_flush(coding, to->text + to->len, room, &made);
        must(to->step != CODING_FULL || made == room);
        to->len += made;
    } while (to->step == CODING_FULL);
    must(to->step == CODING_MORE);
}

/* Pieces of CUT bytes with a flush behind each. */
static void encode(struct coding *coding, struct str all, size_t cut, size_t room,
                   struct outcome *to)
{
    size_t at = 0;

    to->len = 0;
    do {
        step(coding, all, &at, cut, room, to);
        must(to->step != CODING_BROKEN && to->len < TEXT_BYTES_MAX / 2);
        if (to->step == CODING_MORE)
            flush(coding, room, to);
    } while (to->step != CODING_DONE);
    must(at == all.len);
    coding_free(coding);
}

static void write_and_read(struct coding *(*write)(void), struct coding *(*read)(void),
                           struct str text, uint8_t how)
{
    static struct outcome coded, decoded;

    if (text.len > 256)
        text.len = 256;
    encode(write(), text, 1 + (how >> 1 & 7), CODING_FLUSH_ROOM_MIN + (how >> 4), &coded);
    decode(read(), str_make(coded.text, coded.len), coded.len, TEXT_BYTES_MAX, &decoded);
    must(decoded.step == CODING_DONE && decoded.unread == 0);
    must(decoded.len == text.len && memcmp(decoded.text, text.at, text.len) == 0);
}

/* The first byte: the lowest bit is brotli, else the highest zstd. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct coding *(*const READERS[])(void) = { deflate_reader_new, brotli_reader_new,
                                                       zstd_reader_new };
    static struct coding *(*const WRITERS[])(void) = { gzip_writer_new, brotli_writer_new,
                                                       zstd_writer_new };
    struct str text;
    unsigned   which;

    if (!len)
        return 0;
    text  = str_make((const char *)bytes + 1, len - 1);
    which = bytes[0] & 1 ? 1 : (bytes[0] & 0x80 ? 2 : 0);
    read_twice(READERS[which], text, bytes[0]);
    if (len < 1024)
        write_and_read(WRITERS[which], READERS[which], text, bytes[0]);
    return 0;
}
