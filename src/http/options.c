#include "http/options.h"

void http_limits_init(struct http_limits *limits)
{
    *limits = (struct http_limits){
        .line_bytes    = 8 * 1024,
        .head_bytes    = 32 * 1024,
        .head_fields   = 100,
        .body_bytes    = 1024 * 1024,
        .head_ms       = 10 * 1000,
        .body_ms       = 30 * 1000,
        .write_ms      = 30 * 1000,
        .keep_alive_ms = 75 * 1000,
        .half_close_ms = 500,
        .handshake_ms  = 5 * 1000,
        .connections   = 10000,
        .streams       = 128,
        .pipeline      = 32,
    };
}
