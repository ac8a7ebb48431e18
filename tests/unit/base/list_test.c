#include "base/list.h"

#include <stdarg.h>

#include "support/check.h"

struct item {
    int         number;
    struct list link;
};

static struct list head  = LIST_INIT(head);
static struct list other = LIST_INIT(other);
static struct item items[5];

static void start(void)
{
    list_init(&head);
    list_init(&other);
    for (int i = 0; i < 5; i++) {
        items[i].number = i;
        list_init(&items[i].link);
    }
}

/* The list holds these numbers in this order, forwards and backwards. */
static void check_order(const struct list *list, int count, ...)
{
    const struct list *node = list->next;
    va_list            args;

    va_start(args, count);
    for (int i = 0; i < count; i++) {
        CHECK_INT(container_of(node, struct item, link)->number, va_arg(args, int));
        CHECK(node->prev->next == node && node->next->prev == node);
        node = node->next;
    }
    va_end(args);
    CHECK(node == list);
}

TEST(append_and_prepend_keep_their_ends)
{
    start();
    CHECK(list_is_empty(&head));
    list_append(&head, &items[1].link);
    list_append(&head, &items[2].link);
    list_prepend(&head, &items[0].link);
    check_order(&head, 3, 0, 1, 2);
    CHECK(!list_is_empty(&head));
}

TEST(a_removed_node_knows_that_it_is_out)
{
    start();
    list_append(&head, &items[0].link);
    list_append(&head, &items[1].link);
    CHECK(list_is_linked(&items[0].link));
    list_remove(&items[0].link);
    list_remove(&items[0].link);
    CHECK(!list_is_linked(&items[0].link));
    check_order(&head, 1, 1);
}

TEST(take_first_empties_from_the_front)
{
    start();
    list_append(&head, &items[3].link);
    list_append(&head, &items[4].link);
    CHECK(list_take_first(&head) == &items[3].link);
    CHECK(list_take_first(&head) == &items[4].link);
    CHECK(list_take_first(&head) == NULL);
}

TEST(a_safe_walk_survives_removal_of_its_node)
{
    int met = 0;

    start();
    for (int i = 0; i < 5; i++)
        list_append(&head, &items[i].link);
    list_each_safe(node, &head)
    {
        met++;
        if (container_of(node, struct item, link)->number % 2)
            list_remove(node);
    }
    CHECK_INT(met, 5);
    check_order(&head, 3, 0, 2, 4);
    met = 0;
    list_each(node, &head) met++;
    CHECK_INT(met, 3);
}

TEST(splice_moves_all_and_leaves_an_empty_list)
{
    start();
    list_append(&head, &items[0].link);
    list_append(&other, &items[1].link);
    list_append(&other, &items[2].link);
    list_splice(&head, &other);
    check_order(&head, 3, 0, 1, 2);
    CHECK(list_is_empty(&other));
    list_splice(&head, &other);
    check_order(&head, 3, 0, 1, 2);
}

int main(void)
{
    return check_run();
}
