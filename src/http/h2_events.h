/* http/h2_events.h - what nghttp2 tells of frames, in and out, as it is noted: on the streams, in their
 * list of news, in the guard's book. No work is called from here. */
#ifndef HTTP_H2_EVENTS_H
#define HTTP_H2_EVENTS_H

#include <nghttp2/nghttp2.h>

void h2_events_register(nghttp2_session_callbacks *callbacks);

#endif
