/* bind/lmetrics.h - srv.core.metrics: counters, gauges and histograms for Lua, and the page that a
 * scraper reads. */
#ifndef BIND_LMETRICS_H
#define BIND_LMETRICS_H

#include <lua.h>

int lmetrics_open(lua_State *L);

#endif
