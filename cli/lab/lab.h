/* The laboratory, dealfs-lab: a program of its own, so that `dealfs` needs no libjpeg on a node. `dealfs simulate`,
 * `model` and `demo` execute it: as `DEALFS COMMAND …`, where DEALFS is the path of the program that does so. */
#ifndef CLI_LAB_LAB_H
#define CLI_LAB_LAB_H

extern const char *lab_dealfs; /* the path of `dealfs` */

int simulate_command(int argc, char **argv);
int model_command(int argc, char **argv);
int demo_command(int argc, char **argv);

#endif
