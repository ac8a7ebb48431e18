/* Addresses and networks as texts: what is read reads back from its one spelling, and a network has
 * the address that it was made of. links: srv_base */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cidr.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(int claim)
{
    if (!claim)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str  text = str_make((const char *)bytes, len);
    char        spelling[CIDR_TEXT_BYTES];
    struct cidr cidr;
    struct ip   ip, again;

    if (ip_parse(&ip, text)) {
        must(ip_format(&ip, spelling) != NULL);
        must(ip_parse(&again, str_of(spelling)) && memcmp(&ip, &again, sizeof(ip)) == 0);
        must(cidr_parse(&cidr, text) && cidr.bits == CIDR_BITS && cidr_has(&cidr, &ip));
    }
    if (cidr_parse(&cidr, text)) {
        must(cidr.bits <= CIDR_BITS && cidr_has(&cidr, &cidr.ip));
        for (unsigned bits = 0; bits <= cidr.bits; bits++) {
            struct cidr wider = cidr_around(&cidr.ip, bits);

            must(cidr_has(&wider, &cidr.ip));
        }
    }
    return 0;
}
