#include "bind/lsocket_fault.h"

#include <string.h>

#include "bind/lerror.h"
#include "bind/lsocket_state.h"
#include "net/tls.h"

int lsocket_push_closed(lua_State *L, const struct lsocket *s)
{
    if (s->open && *tls_fault(&s->stream))
        return lerror_nil(L, "tls", "%s", tls_fault(&s->stream));
    if (s->open && s->stream.error)
        return lerror_nil(L, "closed", "the connection is lost: %s", strerror(s->stream.error));
    return lerror_nil(L, "closed", "the socket is closed");
}
