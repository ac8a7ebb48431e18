#include "server/adoption.h"

#include <stdio.h>

#include "support/check.h"

/* What was asked for, as text: "2 adopts 0; 2 gives 0; ". */
static char   story[1024];
static size_t told;

static void tell(unsigned worker, const char *what, unsigned slot)
{
    told += (size_t)snprintf(story + told, sizeof(story) - told, "%u %s %u; ", worker, what, slot);
}

static void adopt(unsigned worker, unsigned slot, void *arg)
{
    tell(worker, "adopts", slot);
}

static void give_back(unsigned worker, unsigned slot, void *arg)
{
    tell(worker, "gives", slot);
}

static const struct adoption_ops OPS = { adopt, give_back };

static void check_story(const char *want)
{
    CHECK_STR(story, want);
    told     = 0;
    story[0] = '\0';
}

static struct adoption fresh(unsigned workers)
{
    struct adoption adoption;

    told     = 0;
    story[0] = '\0';
    adoption_init(&adoption, workers, &OPS, NULL);
    return adoption;
}

TEST(the_next_worker_polls_a_late_ones_listener_until_it_is_back)
{
    struct adoption adoption = fresh(3);

    adoption_late(&adoption, 2);
    check_story("0 adopts 2; ");
    adoption_back(&adoption, 2);
    check_story("0 gives 2; ");
}

TEST(a_late_neighbour_adopts_nothing)
{
    struct adoption adoption = fresh(4);

    adoption_late(&adoption, 1);
    check_story("2 adopts 1; ");
    adoption_late(&adoption, 0);
    check_story("2 adopts 0; ");
}

TEST(an_adopter_that_becomes_late_passes_on_what_it_adopted)
{
    struct adoption adoption = fresh(4);

    adoption_late(&adoption, 0);
    check_story("1 adopts 0; ");
    adoption_late(&adoption, 1);
    check_story("1 gives 0; 2 adopts 0; 2 adopts 1; ");
    adoption_back(&adoption, 1); /* 2 does well: 0's stays there */
    check_story("2 gives 1; ");
    adoption_back(&adoption, 0);
    check_story("2 gives 0; ");
}

TEST(where_all_are_late_the_first_one_back_takes_what_nobody_polls)
{
    struct adoption adoption = fresh(3);

    for (unsigned i = 0; i < 3; i++)
        adoption_late(&adoption, i);
    check_story("1 adopts 0; 1 gives 0; 2 adopts 0; 2 adopts 1; 2 gives 0; 2 gives 1; ");
    adoption_back(&adoption, 1);
    check_story("1 adopts 0; 1 adopts 2; ");
    adoption_back(&adoption, 0);
    check_story("1 gives 0; ");
    adoption_back(&adoption, 2);
    check_story("1 gives 2; ");
}

TEST(a_single_worker_has_no_neighbour)
{
    struct adoption adoption = fresh(1);

    adoption_late(&adoption, 0);
    adoption_back(&adoption, 0);
    check_story("");
}

int main(void)
{
    return check_run();
}
