/* server/admin_about.h - the command `about` of the admin socket: which server this is. */
#ifndef SERVER_ADMIN_ABOUT_H
#define SERVER_ADMIN_ABOUT_H

#include "server/admin.h"

struct config;

struct admin_about {
    struct admin_command command;
    const struct config *config;
    unsigned             workers;
};

/* In its owner's memory, which outlives ADMIN. */
void admin_about_add(struct admin_about *about, struct admin *admin, const struct config *config,
                     unsigned workers);

#endif
