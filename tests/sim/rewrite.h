/* Files of the source that are written while they are read. */
#ifndef TESTS_SIM_REWRITE_H
#define TESTS_SIM_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

/* Before the run begins: the data set's source is a copy of its own, below this directory. */
void rewrite_prepare(const char *directory);
void rewrite_begin(void);
void rewrite_some(void); /* writes some file, or will when it is read next: in place or by a rename; or it is removed */
void rewrite_end(void);  /* no more of them */
bool rewrite_has(uint32_t file); /* has it begun with this one? */

#endif
