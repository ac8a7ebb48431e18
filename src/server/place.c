#include "server/place.h"

#include <ctype.h>
#include <stdio.h>

#include "base/str.h"

enum { ORIGIN_BYTES_MAX = 240 }; /* of a long path the setting's name is not what is cut off */

bool place_is_flag(const char *origin)
{
    return str_starts_with(str_of(origin), STR("--"));
}

bool place_is_file(const char *origin)
{
    return str_ends_with(str_of(origin), STR("/config.lua"));
}

static bool is_variable(const char *origin)
{
    return isupper((unsigned char)origin[0]);
}

struct place place_of(const char *origin, const char *setting)
{
    struct place place;

    if (place_is_flag(origin) || is_variable(origin))
        snprintf(place.text, sizeof(place.text), "%s", origin);
    else
        snprintf(place.text, sizeof(place.text), "%.*s: %s", ORIGIN_BYTES_MAX, origin, setting);
    return place;
}
