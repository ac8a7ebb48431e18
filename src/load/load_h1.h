/* load/load_h1.h - HTTP/1.1 on a connection of a load: requests one behind the other, answers in the same
 * order. */
#ifndef LOAD_LOAD_H1_H
#define LOAD_LOAD_H1_H

#include "load/load_protocol.h"

extern const struct load_protocol LOAD_H1;

#endif
