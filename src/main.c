/* srv: an HTTP application server that people program in Lua. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
