/* base/list.h - intrusive doubly linked lists; the head is a node of its own.
 *
 * A node that is in no list points to itself, so list_remove() may be called twice. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

#include "base/compiler.h"

struct list {
    struct list *next;
    struct list *prev;
};

#define LIST_INIT(head)                                                                            \
    {                                                                                              \
        &(head), &(head)                                                                           \
    }

/* The first member is the struct's address for most users; container_of() serves the rest. */
#define list_each(node, head)                                                                      \
    for (struct list *node = (head)->next; node != (head); node = node->next)

/* Like list_each(), but NODE may be removed or freed in the body. */
#define list_each_safe(node, head)                                                                 \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);              \
         node = node##_next, node##_next = node->next)

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool list_is_linked(const struct list *node)
{
    return node->next != node;
}

static inline void list_insert_between(struct list *node, struct list *prev, struct list *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void list_append(struct list *head, struct list *node)
{
    list_insert_between(node, head->prev, head);
}

static inline void list_prepend(struct list *head, struct list *node)
{
    list_insert_between(node, head, head->next);
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Removes and returns the first node; NULL when the list is empty. */
static inline struct list *list_take_first(struct list *head)
{
    struct list *node = head->next;

    if (node == head)
        return NULL;
    list_remove(node);
    return node;
}

/* Moves every node of FROM to the end of TO; FROM is empty then. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next   = from->next;
    from->prev->next = to;
    to->prev         = from->prev;
    list_init(from);
}

#endif
