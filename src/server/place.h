/* server/place.h - how a message about a setting begins: in the words of who gave it. */
#ifndef SERVER_PLACE_H
#define SERVER_PLACE_H

#include <stdbool.h>

enum { PLACE_BYTES = 320 };

struct place {
    char text[PLACE_BYTES];
};

/* ORIGIN as of config_origin(). "--client-ca" and "SRV_CLIENT_CA" name the setting themselves; of a file it is
 * said: "/app/config.lua: client_ca". */
struct place place_of(const char *origin, const char *setting);

bool place_is_flag(const char *origin);
bool place_is_file(const char *origin);

#endif
