/* data/sqlite_fault.h - SQLite's result codes as faults. Inside data/sqlite_* alone. */
#ifndef DATA_SQLITE_FAULT_H
#define DATA_SQLITE_FAULT_H

#include <sqlite3.h>

#include "base/str.h"

struct fault;

/* What RC, just returned for SQL on HANDLE, means. Returns -1, like fault_set(). */
int sqlite_fault(struct fault *fault, sqlite3 *handle, int rc, struct str sql);

#endif
