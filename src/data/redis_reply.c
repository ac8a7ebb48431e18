#include "data/redis_reply.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"

/* A node: its kind, its number or the length of its text, the text. Not aligned, so copied. */
enum { HEAD_BYTES = 1 + sizeof(int64_t) };

static bool has_text(enum reply_kind kind)
{
    return kind == REPLY_TEXT || kind == REPLY_STATUS || kind == REPLY_FAULT;
}

void reply_add(struct buf *to, enum reply_kind kind, int64_t number, struct str text)
{
    size_t len = has_text(kind) ? text.len : 0;
    char  *at  = buf_reserve(to, HEAD_BYTES + len);

    if (!at)
        return;
    if (has_text(kind))
        number = (int64_t)len;
    at[0] = (char)kind;
    memcpy(at + 1, &number, sizeof(number));
    if (len)
        memcpy(at + HEAD_BYTES, text.at, len);
    to->len += HEAD_BYTES + len;
}

bool reply_next(struct str *rest, struct reply_node *node)
{
    size_t len;

    if (rest->len == 0)
        return false;
    assert(rest->len >= HEAD_BYTES);
    node->kind = (enum reply_kind)rest->at[0];
    memcpy(&node->number, rest->at + 1, sizeof(node->number));
    len        = has_text(node->kind) ? (size_t)node->number : 0;
    node->text = str_make(rest->at + HEAD_BYTES, len);
    assert(rest->len >= HEAD_BYTES + len);
    *rest = str_from(*rest, HEAD_BYTES + len);
    return true;
}

bool reply_skip(struct str *rest)
{
    struct reply_node node;
    int64_t           left = 1; /* nodes that belong to it */

    while (left > 0 && reply_next(rest, &node))
        left += (node.kind == REPLY_ARRAY ? node.number : 0) - 1;
    return left == 0;
}

struct str reply_fault_word(struct str fault)
{
    return str_make(fault.at, str_find(fault, ' '));
}
