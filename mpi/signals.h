/* SIGINT and SIGTERM end the courier, never the mounts: blocked from the start, so that no thread of MPI takes them;
 * looked for while the world forms, and read from a descriptor by the event loop. */
#ifndef MPI_SIGNALS_H
#define MPI_SIGNALS_H

int signals_open(void);  /* block them; a descriptor that is readable when one has come, the process's, or -errno */
int signals_take(void);  /* which has come; 0: none */
void signals_obey(void); /* exits when one has come: for the join, where nobody's read waits for us */

#endif
