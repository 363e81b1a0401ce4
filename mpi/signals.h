/* SIGINT and SIGTERM end the courier, never the mounts: blocked from the start, so that no thread of MPI takes them;
 * looked for while the world forms, and read from a descriptor by the event loop. */
#ifndef MPI_SIGNALS_H
#define MPI_SIGNALS_H

void signals_block(void);
void signals_obey(void);  /* exits when one has come: for the join, where nobody's read waits for us */
int signals_open(void);   /* a descriptor that is readable when one has come, or -errno */
int signals_take(int fd); /* which; 0: none */

#endif
