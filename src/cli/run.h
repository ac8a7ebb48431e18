/* cli/run.h - `srv run APP`, which `srv APP` is short for: serve an app. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

/* ARGV begins behind the command's name. */
int run_main(int argc, char **argv);

#endif
