/* http/mime.h - from a file's extension to its media type. */
#ifndef HTTP_MIME_H
#define HTTP_MIME_H

#include "base/str.h"

/* "html" -> "text/html; charset=utf-8". Either case; empty when it is not known. */
struct str mime_of_extension(struct str extension);
/* By what follows the last dot of the last segment; "application/octet-stream" when unknown. */
struct str mime_of_path(struct str path);

#endif
