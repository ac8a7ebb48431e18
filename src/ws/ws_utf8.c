#include "ws/ws_utf8.h"

enum { CONTINUES_LOW = 0x80, CONTINUES_HIGH = 0xbf };

/* Where the run of ASCII that begins at AT ends, or somewhat before: eight bytes at a step. */
static const unsigned char *skip_ascii(const unsigned char *at, const unsigned char *end)
{
    uint64_t eight;

    while (end - at >= 8) {
        memcpy(&eight, at, 8);
        if (eight & UINT64_C(0x8080808080808080))
            break;
        at += 8;
    }
    return at;
}

/* The first of several bytes: its second byte has bounds of its own where a shorter form, a
 * surrogate or a number that is too large would begin. */
static bool begin(struct ws_utf8 *utf8, unsigned char first)
{
    if (first < 0xc2 || first > 0xf4)
        return false;
    utf8->left = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    utf8->low  = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : CONTINUES_LOW;
    utf8->high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : CONTINUES_HIGH;
    return true;
}

static bool go_on(struct ws_utf8 *utf8, unsigned char byte)
{
    if (byte < utf8->low || byte > utf8->high)
        return false;
    utf8->left--;
    utf8->low  = CONTINUES_LOW;
    utf8->high = CONTINUES_HIGH;
    return true;
}

bool ws_utf8_feed(struct ws_utf8 *utf8, struct str piece)
{
    const unsigned char *at = (const unsigned char *)piece.at;
    const unsigned char *end;

    if (!piece.len)
        return true;
    for (end = at + piece.len; at < end; at++) {
        if (utf8->left == 0)
            at = skip_ascii(at, end);
        if (at == end)
            break;
        if (utf8->left ? !go_on(utf8, *at) : *at >= 0x80 && !begin(utf8, *at))
            return false;
    }
    return true;
}

bool ws_utf8_is_text(struct str text)
{
    struct ws_utf8 utf8 = { 0 };

    return ws_utf8_feed(&utf8, text) && ws_utf8_is_whole(&utf8);
}
