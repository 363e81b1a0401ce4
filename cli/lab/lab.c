/* main of dealfs-lab. `dealfs`, which knows the usage and answers --help, has checked its arguments. */
#include "cli/lab/lab.h"

#include "cli/base/command.h"

#include <string.h>

const char *lab_dealfs;

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } labs[] = {{"simulate", simulate_command}, {"model", model_command}, {"demo", demo_command}};
    lab_dealfs = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof labs / sizeof *labs; i++)
        if (strcmp(argv[1], labs[i].name) == 0)
            return command_end(labs[i].run(argc - 1, argv + 1));
    fputs("usage: dealfs simulate|model|demo …\n", stderr);
    return COMMAND_USAGE;
}
