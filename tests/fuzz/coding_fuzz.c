/* links: srv_base
 *
 * The first byte tells the coding and how the rest is cut: however bytes come and however much room
 * there is, the same text comes out and ends the same way, each step keeps its word, and no step goes
 * on for ever. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/brotli.h"
#include "base/coding.h"
#include "base/deflate.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct outcome whole, cut;
    struct coding *(*const make)(void) =
        len && bytes[0] & 1 ? brotli_reader_new : deflate_reader_new;
    struct str all;

    if (!len)
        return 0;
    all = str_make((const char *)bytes + 1, len - 1);
    decode(make(), all, all.len + 1, TEXT_BYTES_MAX, &whole);
    decode(make(), all, 1 + (bytes[0] >> 1 & 7), 1 + (bytes[0] >> 4), &cut);
    if (whole.len == TEXT_BYTES_MAX || cut.len == TEXT_BYTES_MAX)
        return 0;
    must(whole.step == cut.step);
    must(whole.step != CODING_DONE || (whole.len == cut.len && whole.unread == cut.unread &&
                                       memcmp(whole.text, cut.text, cut.len) == 0));
    return 0;
}
