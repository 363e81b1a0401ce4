/* SIGINT and SIGTERM end the courier, never the mounts. They are blocked from the start, so that no thread of MPI gets
 * them; checked while the world forms; and read from a descriptor by the event loop. */
#ifndef MPI_SIGNALS_H
#define MPI_SIGNALS_H

/* block them; returns a descriptor, owned by the process, that becomes readable when one arrives; or -errno */
int signals_open(void);
int signals_take(void);  /* the signal that has arrived; 0: none */
void signals_obey(void); /* exits if one has arrived: for the join, when no read depends on us */

/* Also call this function at each signals_obey, on the same thread; NULL: none. */
void signals_while_waiting(void (*work)(void));

/* Calls a function that may wait forever for other ranks, such as MPI_Init. A signal that arrives meanwhile ends the
 * process. Returns what the function returns. `notice` is logged if it waits for some seconds; NULL: nothing is. */
int signals_obey_during(int (*wait)(void), const char *notice);

#endif
