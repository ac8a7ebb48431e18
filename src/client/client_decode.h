/* client/client_decode.h - which content coding a response's body is to be freed from. */
#ifndef CLIENT_CLIENT_DECODE_H
#define CLIENT_CLIENT_DECODE_H

struct coding;
struct response;

/* For gzip, x-gzip, deflate, br and zstd; NULL: there is none, or another, or several (RFC 9110, 8.4: then
 * the body stays as it is and Content-Encoding tells). */
struct coding *client_decode(const struct response *response);

#endif
