/* The laboratory, dealfs-lab: a separate program, so that `dealfs` needs no libjpeg on a node. `dealfs simulate`,
 * `model` and `demo` execute it as `DEALFS COMMAND …`, where DEALFS is the path of `dealfs`. */
#ifndef CLI_LAB_LAB_H
#define CLI_LAB_LAB_H

extern const char *lab_dealfs; /* the path of `dealfs` */

int simulate_command(int argc, char **argv);
int model_command(int argc, char **argv);
int demo_command(int argc, char **argv);

#endif
