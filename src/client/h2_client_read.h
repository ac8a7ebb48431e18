/* client/h2_client_read.h - what comes in on a connection of client/h2_client.h: responses and the ends of streams. */
#ifndef CLIENT_H2_CLIENT_READ_H
#define CLIENT_H2_CLIENT_READ_H

#include <nghttp2/nghttp2.h>

/* The callbacks' argument is the struct h2_client. */
void h2_client_read_listen(nghttp2_session_callbacks *to);

#endif
