/* bind/lcrypto_job.h - srv.core.crypto_job: digests and sealed texts of what is large, on the pool's lane
 * for computing. A megabyte keeps a processor busy for 2 ms, which the loop has not got. */
#ifndef BIND_LCRYPTO_JOB_H
#define BIND_LCRYPTO_JOB_H

#include <lua.h>

/* srv.core.crypto_job: { can_wait, hash, hmac, seal, unseal }, as those of srv.core.crypto */
int lcrypto_job_open(lua_State *L);

#endif
