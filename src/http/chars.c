#include "http/chars.h"

#include <string.h>

#define T CHARS_TOKEN
#define B (CHARS_TOKEN | CHARS_TARGET)
#define R CHARS_TARGET
/* RFC 3986 allows fewer characters in a target, but browsers send \ ^ ` { | } as they are. Quotes
 * and angle brackets they escape, and a fragment they keep to themselves (RFC 9112, 3.2). */
static const unsigned char kinds[256] = {
    ['!'] = B, ['"'] = 0, ['#'] = T, ['$'] = B,  ['%'] = B, ['&'] = B, ['\''] = B, ['('] = R,
    [')'] = R, ['*'] = B, ['+'] = B, [','] = R,  ['-'] = B, ['.'] = B, ['/'] = R,  ['0'] = B,
    ['1'] = B, ['2'] = B, ['3'] = B, ['4'] = B,  ['5'] = B, ['6'] = B, ['7'] = B,  ['8'] = B,
    ['9'] = B, [':'] = R, [';'] = R, ['<'] = 0,  ['='] = R, ['>'] = 0, ['?'] = R,  ['@'] = R,
    ['A'] = B, ['B'] = B, ['C'] = B, ['D'] = B,  ['E'] = B, ['F'] = B, ['G'] = B,  ['H'] = B,
    ['I'] = B, ['J'] = B, ['K'] = B, ['L'] = B,  ['M'] = B, ['N'] = B, ['O'] = B,  ['P'] = B,
    ['Q'] = B, ['R'] = B, ['S'] = B, ['T'] = B,  ['U'] = B, ['V'] = B, ['W'] = B,  ['X'] = B,
    ['Y'] = B, ['Z'] = B, ['['] = R, ['\\'] = R, [']'] = R, ['^'] = B, ['_'] = B,  ['`'] = B,
    ['a'] = B, ['b'] = B, ['c'] = B, ['d'] = B,  ['e'] = B, ['f'] = B, ['g'] = B,  ['h'] = B,
    ['i'] = B, ['j'] = B, ['k'] = B, ['l'] = B,  ['m'] = B, ['n'] = B, ['o'] = B,  ['p'] = B,
    ['q'] = B, ['r'] = B, ['s'] = B, ['t'] = B,  ['u'] = B, ['v'] = B, ['w'] = B,  ['x'] = B,
    ['y'] = B, ['z'] = B, ['{'] = R, ['|'] = B,  ['}'] = R, ['~'] = B,
};
#undef T
#undef B
#undef R

const char *chars_skip(const char *at, const char *end, enum chars_kind kind)
{
    while (at < end && kinds[(unsigned char)*at] & kind)
        at++;
    return at;
}

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

#define EIGHT_TIMES(byte) (UINT64_C(0x0101010101010101) * (byte))

/* A bit for each control character among eight bytes. Only the lowest bit that is set is sure to
 * be right: the subtraction borrows from the bytes above a hit. */
static uint64_t controls_of(uint64_t eight)
{
    uint64_t below_space = (eight - EIGHT_TIMES(0x20)) & ~eight;
    uint64_t not_del     = eight ^ EIGHT_TIMES(0x7f);
    uint64_t del         = (not_del - EIGHT_TIMES(1)) & ~not_del;

    return (below_space | del) & EIGHT_TIMES(0x80);
}

/* The first control character, a tab included, or END. */
static const char *find_raw_control(const char *at, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - at >= 8) {
        uint64_t eight, hits;

        memcpy(&eight, at, 8);
        hits = controls_of(eight);
        if (hits)
            return at + __builtin_ctzll(hits) / 8;
        at += 8;
    }
#endif
    while (at < end && !is_control((unsigned char)*at))
        at++;
    return at;
}

const char *chars_find_control(const char *at, const char *end)
{
    for (at = find_raw_control(at, end); at < end && *at == '\t';)
        at = find_raw_control(at + 1, end);
    return at;
}
